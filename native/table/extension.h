// Observers of a table. Called with the table's lock held, in the order the changes happen, so
// they must be quick and must not call the table. Items come with their slots.
#pragma once

#include <string>

#include "native/table/item.h"

namespace gear_reverb::table {

class Extension {
 public:
  virtual ~Extension() = default;

  // Once, before the first change. Items that are there already come next, as inserts.
  virtual void OnAttach(const std::string& table_name) { (void)table_name; }
  virtual void OnInsert(const Item& item) { (void)item; }
  // A new priority; `item` holds it.
  virtual void OnUpdate(const Item& item) { (void)item; }
  // `item.times_sampled` counts this draw.
  virtual void OnSample(const Item& item) { (void)item; }
  // Before the item goes, for whatever reason but a reset.
  virtual void OnDelete(const Item& item) { (void)item; }
  // Before all items go.
  virtual void OnReset() {}
  virtual std::string DebugString() const = 0;
};

}  // namespace gear_reverb::table
