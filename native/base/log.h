// Lines for the operator, on standard error.
#pragma once

#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

namespace gear_reverb::base {

// Debug lines are for those who set GEAR_REVERB_DEBUG to anything but nothing.
enum class LogLevel { kDebug, kInfo, kWarning };

// Writes one line with level and time. Thread-safe; never blocks on anything but the stream.
void Log(LogLevel level, const std::string& text);

// A warning of an error that nobody can be given, such as in a destructor.
void WarnIfError(const absl::Status& status);

// The first warning of a key, for what would be told again and again.
void WarnOnce(const std::string& key, const std::string& text);

// Receives every line, of every level, in place of standard error until it is replaced; null
// restores that. The sink is called with a lock held: it must not log. For tests.
using LogSink = absl::AnyInvocable<void(LogLevel, const std::string&)>;
void SetLogSink(LogSink sink);

}  // namespace gear_reverb::base
