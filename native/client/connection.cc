#include "native/client/connection.h"

#include "native/base/environment.h"

namespace gear_reverb::client {

absl::Status BatchStream::Seed(uint64_t) {
  return absl::UnimplementedError("seed is not supported over this connection.");
}

absl::Status Connection::ReportUnused(const std::string&, int64_t) { return absl::OkStatus(); }

absl::Status Connection::InsertStacked(const StackedItems&, absl::Time, ConfirmedItems*) {
  return absl::UnavailableError("Stacked items go one by one over this connection.");
}

absl::Duration ConnectPatience() {
  return absl::Seconds(base::NumberSetting("GEAR_REVERB_CONNECT_TIMEOUT", 0).value_or(60));
}

}  // namespace gear_reverb::client
