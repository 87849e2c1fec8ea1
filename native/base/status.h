// Helpers to propagate absl::Status, and absl::Status built from parts.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#define GR_CONCAT_INNER(a, b) a##b
#define GR_CONCAT(a, b) GR_CONCAT_INNER(a, b)

// Returns from the enclosing function if `expr` is an error.
#define GR_RETURN_IF_ERROR(expr)                                            \
  do {                                                                      \
    if (absl::Status gr_status = (expr); !gr_status.ok()) return gr_status; \
  } while (false)

// `GR_ASSIGN_OR_RETURN(auto x, F());` assigns the value of a StatusOr or returns its error.
#define GR_ASSIGN_OR_RETURN(lhs, expr) \
  GR_ASSIGN_OR_RETURN_IMPL(GR_CONCAT(gr_status_or_, __LINE__), lhs, expr)
#define GR_ASSIGN_OR_RETURN_IMPL(name, lhs, expr) \
  auto name = (expr);                             \
  if (!name.ok()) return name.status();           \
  lhs = *std::move(name)

namespace gear_reverb::base {

template <typename... Parts>
absl::Status InvalidArgument(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status Internal(const Parts&... parts) {
  return absl::InternalError(absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status NotFound(const Parts&... parts) {
  return absl::NotFoundError(absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status FailedPrecondition(const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status DataLoss(const Parts&... parts) {
  return absl::DataLossError(absl::StrCat(parts...));
}

}  // namespace gear_reverb::base
