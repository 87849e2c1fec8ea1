// Lines for the operator, on standard error.
#pragma once

#include <string>

#include "absl/functional/any_invocable.h"

namespace gear_reverb::base {

enum class LogLevel { kInfo, kWarning };

// Writes one line with level and time. Thread-safe; never blocks on anything but the stream.
void Log(LogLevel level, const std::string& text);

// Receives every line in place of standard error until it is replaced; null restores that. The
// sink is called with a lock held: it must not log. For tests.
using LogSink = absl::AnyInvocable<void(LogLevel, const std::string&)>;
void SetLogSink(LogSink sink);

}  // namespace gear_reverb::base
