// What a table is, on Reverb's wire (TableInfo, KeyDistributionOptions).
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "native/rpc/message_writer.h"
#include "native/table/table.h"

namespace gear_reverb::rpc {

MessageWriter EncodeTableInfo(const table::TableInfo& info);

MessageWriter EncodeSelectorOptions(const selectors::SelectorOptions& options);
// INVALID_ARGUMENT if no strategy is set.
absl::StatusOr<selectors::SelectorOptions> DecodeSelectorOptions(absl::string_view message);

// What a writer needs of a serialised TableInfo.
struct TableSignature {
  std::string name;
  std::string signature;       // Serialised StructuredValue; empty if there is none.
  bool takes_negative = true;  // Priorities below 0.
};
absl::StatusOr<TableSignature> DecodeTableSignature(absl::string_view table_info);

}  // namespace gear_reverb::rpc
