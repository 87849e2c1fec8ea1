// One InsertStreamRequest: checked as a whole, its chunks put into a session, its items resolved.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "native/service/insert_session.h"

namespace gear_reverb::server {

// The items of `message`, without callbacks; none if it has chunks alone. All or nothing: an item
// that is wrong keeps the message's others out too. After a message with items `session` holds
// just the chunks that it says to keep. The errors are those of docs/formats/wire.md.
absl::StatusOr<std::vector<service::InsertSession::NewItem>> ReadInsertRequest(
    absl::string_view message, service::InsertSession& session);

}  // namespace gear_reverb::server
