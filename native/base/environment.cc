#include "native/base/environment.h"

#include <cstdlib>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "native/base/log.h"

namespace gear_reverb::base {
namespace {

template <typename T, typename Parse>
std::optional<T> Setting(const char* name, T least, T most, const char* kind, Parse parse) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  // What is not a number is not at least anything.
  if (T value; parse(text, &value) && value >= least && value <= most) return value;
  std::string wanted = absl::StrCat(kind, " >= ", least);
  if (most < std::numeric_limits<T>::max()) absl::StrAppend(&wanted, " and <= ", most);
  IgnoreSetting(name, text, wanted);
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> IntegerSetting(const char* name, int64_t least, int64_t most) {
  return Setting(name, least, most, "a whole number",
                 [](const char* text, int64_t* value) { return absl::SimpleAtoi(text, value); });
}

std::optional<double> NumberSetting(const char* name, double least) {
  return Setting(name, least, std::numeric_limits<double>::infinity(), "a number",
                 [](const char* text, double* value) { return absl::SimpleAtod(text, value); });
}

void IgnoreSetting(const char* name, const std::string& text, const std::string& wanted) {
  const std::string warning =
      absl::StrCat(name, " is '", text, "' and must be ", wanted, "; the default is used.");
  WarnOnce(warning, warning);
}

}  // namespace gear_reverb::base
