// The parts of the Python module; each defines its classes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "native/client/client.h"
#include "pybind11/pybind11.h"

namespace gear_reverb::bindings {

void DefineTables(pybind11::module_& module);   // Selectors, rate limiter, extensions, table.
void DefineServer(pybind11::module_& module);   // Checkpointer, server.
void DefineNests(pybind11::module_& module);    // Plans that flatten nests.
void DefineHistory(pybind11::module_& module);  // The log of steps, and columns of it.
void DefineWriters(pybind11::module_& module);  // Cell refs, chunker options, both writers.
void DefineStructuredWriter(pybind11::module_& module);
void DefineSampler(pybind11::module_& module);
void DefineBatchSampler(pybind11::module_& module);
void DefineFixedBatchSampler(pybind11::module_& module);
void DefineHostCopies(pybind11::module_& module);
// Last, since it makes the others.
void DefineClient(pybind11::module_& module);
void DefineBlocks(pybind11::module_& module);  // Blocks of samples; takes a client.

void DefineCuda(pybind11::module_& module);        // What there is of kernels and GPUs.
void DefineCudaSelect(pybind11::module_& module);  // Checks and timings of selection.

// After the client and the writers.
void DefineBatchInsert(pybind11::module_& module);
void DefineBatchAppend(pybind11::module_& module);

using ClientPtr = std::shared_ptr<client::Client>;

// What the client makes.
pybind11::object MakeWriter(const ClientPtr& client, int chunk_length, int max_timesteps,
                            bool delta_encoded, int max_in_flight_items);
pybind11::object MakeTrajectoryWriter(const ClientPtr& client, pybind11::handle chunker_options,
                                      bool validate_items, int64_t max_in_flight_bytes);
pybind11::object MakeStructuredWriter(const ClientPtr& client, const pybind11::list& configs);
pybind11::object MakeSampler(const ClientPtr& client, const std::string& table, int64_t max_samples,
                             int64_t buffer_size, int64_t timeout_ms);
pybind11::object MakeBatchSampler(const ClientPtr& client, const std::string& table,
                                  int64_t batch_size, int64_t prefetch, const std::string& ragged,
                                  std::optional<int64_t> pad_to, std::optional<uint64_t> seed,
                                  int64_t max_bytes, const std::optional<std::string>& device_name,
                                  const std::string& float32_to, const std::string& uint8_to,
                                  const std::string& draw);
pybind11::object MakeFixedBatchSampler(const ClientPtr& client, const std::string& table,
                                       int64_t batch_size, const std::string& ragged,
                                       std::optional<int64_t> pad_to, std::optional<uint64_t> seed,
                                       int64_t max_bytes, const std::string& device_name,
                                       const std::string& float32_to, const std::string& uint8_to,
                                       std::optional<double> beta, bool top_k);
// See BatchSampler.Next for the last two arguments and the result.
pybind11::tuple SampleBatch(const ClientPtr& client, const std::string& table, int64_t batch_size,
                            const std::string& ragged, std::optional<int64_t> pad_to,
                            int64_t max_bytes, std::optional<double> timeout,
                            std::optional<double> beta);

}  // namespace gear_reverb::bindings
