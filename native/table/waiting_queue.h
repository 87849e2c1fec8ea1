// A fair queue of calls that wait: first come, first served, with deadlines and cancellation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "native/base/timer.h"

namespace gear_reverb::table {

// Thread-compatible. Every operation is logarithmic in the number of waiting calls. Ids ascend
// with the order of the pushes.
template <typename Call>
class WaitingQueue {
 public:
  struct Entry {
    Call call;
    base::SteadyTime deadline;
    base::SteadyTime since;
    base::SteadyTime log_at;  // When to tell the operator that this call waits.
  };

  void Push(uint64_t id, Entry entry) {
    if (entry.deadline != base::kNever) deadlines_.emplace(entry.deadline, id);
    entries_.emplace_hint(entries_.end(), id, std::move(entry));
  }

  bool empty() const { return entries_.empty(); }
  int64_t size() const { return entries_.size(); }
  Entry& front() { return entries_.begin()->second; }
  const Entry& front() const { return entries_.begin()->second; }
  Call PopFront() { return Take(entries_.begin()); }

  std::optional<Call> Remove(uint64_t id) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return std::nullopt;
    return Take(found);
  }

  // Takes out the first call to expire if its deadline is not after `now`.
  std::optional<Call> PopExpired(base::SteadyTime now) {
    if (deadlines_.empty() || deadlines_.begin()->first > now) return std::nullopt;
    return Remove(deadlines_.begin()->second);
  }

  // When something is next to be done: a call expires, or the first one's wait is to be logged.
  base::SteadyTime NextEvent() const {
    base::SteadyTime next = base::kNever;
    if (!deadlines_.empty()) next = deadlines_.begin()->first;
    if (!entries_.empty()) next = std::min(next, front().log_at);
    return next;
  }

 private:
  using Entries = std::map<uint64_t, Entry>;

  Call Take(typename Entries::iterator entry) {
    deadlines_.erase({entry->second.deadline, entry->first});
    Call call = std::move(entry->second.call);
    entries_.erase(entry);
    return call;
  }

  Entries entries_;
  std::set<std::pair<base::SteadyTime, uint64_t>> deadlines_;
};

}  // namespace gear_reverb::table
