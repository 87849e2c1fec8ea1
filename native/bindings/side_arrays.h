// What a batch has of its columns besides their data, as Python has it.
#pragma once

#include <cstddef>

#include "native/bindings/device_array.h"
#include "pybind11/pybind11.h"

namespace gear_reverb::bindings {

// One `member` of the sides: of all columns if they agree, else a list by column, of which some are
// None; None if none has it. `make` makes arrays.
template <typename Sides, typename Member, typename Make>
pybind11::object SideArray(const Sides& sides, bool agree, Member member, const Make& make) {
  if (sides.empty()) return pybind11::none();
  if (agree) return make(sides[0].*member);
  pybind11::list list(sides.size());
  bool any = false;
  for (size_t i = 0; i < sides.size(); ++i) {
    list[i] = make(sides[i].*member);
    any = any || (sides[i].*member).has_value();
  }
  return any ? pybind11::object(list) : pybind11::none();
}

// (lengths, mask, cu_seqlens) in a device's output.
inline pybind11::tuple DeviceSideArrays(const std::shared_ptr<device::Output>& output,
                                        const std::vector<device::OutputSides>& sides, bool agree,
                                        int gpu) {
  using device::OutputSides;
  const auto of = [&](auto member) {
    return SideArray(sides, agree, member,
                     [&](const std::optional<device::OutputArray>& array) -> pybind11::object {
                       if (!array.has_value()) return pybind11::none();
                       return DeviceArrayOf(output, *array, gpu);
                     });
  };
  return pybind11::make_tuple(of(&OutputSides::lengths), of(&OutputSides::mask),
                              of(&OutputSides::cu_seqlens));
}

}  // namespace gear_reverb::bindings
