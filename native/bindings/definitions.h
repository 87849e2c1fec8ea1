// The parts of the Python module; each defines its classes.
#pragma once

#include <memory>

#include "native/client/client.h"
#include "pybind11/pybind11.h"

namespace gear_reverb::bindings {

void DefineTables(pybind11::module_& module);   // Selectors, rate limiter, extensions, table.
void DefineServer(pybind11::module_& module);   // Checkpointer, server.
void DefineWriters(pybind11::module_& module);  // Cell refs, chunker options, both writers.
void DefineSampler(pybind11::module_& module);
// Last, since it makes the others.
void DefineClient(pybind11::module_& module);

using ClientPtr = std::shared_ptr<client::Client>;

// What the client makes.
pybind11::object MakeWriter(const ClientPtr& client, int chunk_length, int max_timesteps,
                            bool delta_encoded, int max_in_flight_items);
pybind11::object MakeTrajectoryWriter(const ClientPtr& client, pybind11::handle chunker_options,
                                      bool validate_items, int64_t max_in_flight_bytes);
pybind11::object MakeSampler(const ClientPtr& client, const std::string& table, int64_t max_samples,
                             int64_t buffer_size, int64_t timeout_ms);

}  // namespace gear_reverb::bindings
