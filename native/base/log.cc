#include "native/base/log.h"

#include <cstdio>

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

}  // namespace

void Log(LogLevel level, const std::string& text) {
  {
    Sink& sink = TheSink();
    MutexLock lock(&sink.mutex);
    if (sink.sink != nullptr) return sink.sink(level, text);
  }
  const std::string time =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::Now(), absl::UTCTimeZone());
  // One call, so that lines of several threads do not mix.
  std::fprintf(stderr, "%s %s gear_reverb: %s\n", level == LogLevel::kInfo ? "INFO" : "WARNING",
               time.c_str(), text.c_str());
}

void SetLogSink(LogSink sink) {
  Sink& the_sink = TheSink();
  MutexLock lock(&the_sink.mutex);
  the_sink.sink = std::move(sink);
}

}  // namespace gear_reverb::base
