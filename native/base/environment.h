// Settings that environment variables hold. What cannot be taken is not: a warning names the
// variable and the text, once for each text, and the default stands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gear_reverb::base {

// Null where the variable is not set, or is no number from `least` to `most`.
std::optional<int64_t> IntegerSetting(const char* name, int64_t least, int64_t most = INT64_MAX);
std::optional<double> NumberSetting(const char* name, double least);
// The warning. `wanted` is what it must be: "a number >= 1".
void IgnoreSetting(const char* name, const std::string& text, const std::string& wanted);

}  // namespace gear_reverb::base
