#include "native/base/log.h"

#include <cstdio>
#include <cstdlib>
#include <set>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "native/base/mutex.h"

namespace gear_reverb::base {
namespace {

struct Sink {
  Mutex mutex;
  LogSink sink ABSL_GUARDED_BY(mutex);
};

Sink& TheSink() {
  static Sink* const sink = new Sink;
  return *sink;
}

bool DebugWanted() {
  static const bool wanted = [] {
    const char* const value = std::getenv("GEAR_REVERB_DEBUG");
    return value != nullptr && *value != '\0';
  }();
  return wanted;
}

const char* NameOf(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return "DEBUG";
    case LogLevel::kInfo: return "INFO";
    case LogLevel::kWarning: break;
  }
  return "WARNING";
}

}  // namespace

void Log(LogLevel level, const std::string& text) {
  {
    Sink& sink = TheSink();
    MutexLock lock(&sink.mutex);
    if (sink.sink != nullptr) return sink.sink(level, text);
  }
  if (level == LogLevel::kDebug && !DebugWanted()) return;
  const std::string time =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::Now(), absl::UTCTimeZone());
  // One call, so that lines of several threads do not mix.
  std::fprintf(stderr, "%s %s gear_reverb: %s\n", NameOf(level), time.c_str(), text.c_str());
}

void WarnIfError(const absl::Status& status) {
  if (!status.ok()) Log(LogLevel::kWarning, std::string(status.message()));
}

void WarnOnce(const std::string& key, const std::string& text) {
  struct Told {
    Mutex mutex;
    std::set<std::string> keys ABSL_GUARDED_BY(mutex);
  };
  static Told& told = *new Told;
  {
    MutexLock lock(&told.mutex);
    if (!told.keys.insert(key).second) return;
  }
  Log(LogLevel::kWarning, text);
}

void SetLogSink(LogSink sink) {
  Sink& the_sink = TheSink();
  MutexLock lock(&the_sink.mutex);
  the_sink.sink = std::move(sink);
}

}  // namespace gear_reverb::base
