#include "native/client/connection.h"

#include <cstdlib>

#include "absl/strings/numbers.h"

namespace gear_reverb::client {

absl::Status BatchStream::Seed(uint64_t) {
  return absl::UnimplementedError("seed is not supported over this connection.");
}

absl::Status Connection::ReportUnused(const std::string&, int64_t) { return absl::OkStatus(); }

absl::Status Connection::InsertStacked(const StackedItems&, absl::Time, ConfirmedItems*) {
  return absl::UnavailableError("Stacked items go one by one over this connection.");
}

absl::Duration ConnectPatience() {
  double seconds = 60;
  if (const char* text = std::getenv("GEAR_REVERB_CONNECT_TIMEOUT"); text != nullptr) {
    if (double value; absl::SimpleAtod(text, &value) && value >= 0) seconds = value;
  }
  return absl::Seconds(seconds);
}

}  // namespace gear_reverb::client
