#include "native/device/draw_check.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "native/base/philox.h"
#include "native/base/status.h"
#include "native/device/check_memory.h"

namespace gear_reverb::device {
namespace {

// The bytes of all memory that may have been written, by name.
using Written = std::vector<std::pair<std::string, std::vector<char>>>;

absl::Status Note(const char* name, const CheckMemory& memory, Written* written) {
  GR_ASSIGN_OR_RETURN(std::vector<char> bytes, memory.Read());
  written->emplace_back(name, std::move(bytes));
  return absl::OkStatus();
}

uint32_t Between(base::Philox& random, uint32_t least, uint32_t most) {
  return least + static_cast<uint32_t>(random.NextBelow(most - least + 1));
}

// `count` different slots of `slots`.
std::vector<uint32_t> SomeSlots(base::Philox& random, uint32_t count, uint32_t slots) {
  std::vector<uint32_t> all(slots);
  std::iota(all.begin(), all.end(), 0);
  for (uint32_t i = 0; i < count; ++i) std::swap(all[i], all[Between(random, i, slots - 1)]);
  all.resize(count);
  return all;
}

// A directory and all that is done with it; the same on every backend.
struct Case {
  explicit Case(base::Philox& random) {
    slots = Between(random, 1, 300);
    per_column = 1u << random.NextBelow(6);
    columns = Between(random, 1, 5);
    for (uint32_t slot = 0; slot < slots; ++slot) AddEntry(random, &entries);
    for (uint32_t i = 0; i < slots; ++i) priorities.push_back(random.NextDouble());
    padded = random.NextBelow(2) == 0;
    changed = SomeSlots(random, Between(random, 0, slots), slots);
    for (size_t i = 0; i < changed.size(); ++i) AddEntry(random, &changes);
    changed_priorities = SomeSlots(random, Between(random, 0, slots), slots);
    for (size_t i = 0; i < changed_priorities.size(); ++i) {
      new_priorities.push_back(random.NextDouble());
    }
    drawn.resize(Between(random, 1, 2000));
    for (uint32_t& slot : drawn) slot = static_cast<uint32_t>(random.NextBelow(slots));
    probabilities.resize(Between(random, 1, 5000));
    for (double& each : probabilities) each = random.NextDouble() * 0.01 + 1e-9;
    beta = random.NextBelow(4) == 0 ? 0.0 : random.NextDouble() * 2;
  }

  uint32_t per_slot() const { return columns * per_column; }
  // Of the columns, and, if they are padded, of a mask for every other.
  size_t rows() const { return drawn.size() * (columns + (padded ? (columns + 1) / 2 : 0)); }
  std::vector<PickedSide> sides() const {
    std::vector<PickedSide> made(columns);
    for (uint32_t column = 0; column < columns; column += 2) {
      const uint32_t number = column / 2;
      made[column] = {/*step_bytes=*/1 + column * 3, /*lengths=*/number * drawn.size() * 4,
                      /*mask_rows=*/drawn.size() * (columns + number), /*wanted=*/1};
    }
    return made;
  }

  uint32_t slots, per_column, columns;
  bool padded;
  std::vector<RowPiece> entries, changes;  // Addresses are numbers here: nobody reads there.
  std::vector<double> priorities, new_priorities, probabilities;
  std::vector<uint32_t> changed, changed_priorities, drawn;
  double beta;

 private:
  // Of every column some pieces, the rest null.
  void AddEntry(base::Philox& random, std::vector<RowPiece>* list) const {
    for (uint32_t column = 0; column < columns; ++column) {
      const uint32_t needed = Between(random, 1, per_column);
      uint64_t end = 0;
      for (uint32_t piece = 0; piece < per_column; ++piece) {
        if (piece < needed) end += Between(random, 1, 1 << 20);
        const uintptr_t address = piece < needed ? random.Next() | 1 : 0;
        list->push_back({reinterpret_cast<const std::byte*>(address), end});
      }
    }
  }
};

absl::StatusOr<Written> Run(DrawBackend& backend, const Case& made) {
  SelectBackend& memory = *backend.select();
  Written written;
  GR_ASSIGN_OR_RETURN(const CheckMemory entries, CheckMemory::Of(memory, made.entries));
  GR_ASSIGN_OR_RETURN(const CheckMemory priorities, CheckMemory::Of(memory, made.priorities));
  const DirectoryView directory{entries.data<RowPiece>(), priorities.data<double>(),
                                made.per_slot(), made.per_column};

  GR_ASSIGN_OR_RETURN(const CheckMemory changed, CheckMemory::Of(memory, made.changed));
  GR_ASSIGN_OR_RETURN(const CheckMemory changes, CheckMemory::Of(memory, made.changes));
  GR_ASSIGN_OR_RETURN(const CheckMemory of_priorities,
                      CheckMemory::Of(memory, made.changed_priorities));
  GR_ASSIGN_OR_RETURN(const CheckMemory values, CheckMemory::Of(memory, made.new_priorities));
  const EntryChanges wanted{changed.data<uint32_t>(),
                            changes.data<RowPiece>(),
                            of_priorities.data<uint32_t>(),
                            values.data<double>(),
                            static_cast<uint32_t>(made.changed.size()),
                            static_cast<uint32_t>(made.changed_priorities.size())};
  GR_RETURN_IF_ERROR(backend.WriteEntries(directory, wanted, nullptr));
  GR_RETURN_IF_ERROR(Note("entries", entries, &written));
  GR_RETURN_IF_ERROR(Note("entries' priorities", priorities, &written));

  GR_ASSIGN_OR_RETURN(const CheckMemory drawn, CheckMemory::Of(memory, made.drawn));
  GR_ASSIGN_OR_RETURN(const CheckMemory rows,
                      CheckMemory::Create(memory, made.rows() * sizeof(Row)));
  GR_ASSIGN_OR_RETURN(
      const CheckMemory pieces,
      CheckMemory::Create(memory, made.rows() * made.per_column * sizeof(RowPiece)));
  GR_ASSIGN_OR_RETURN(const CheckMemory picked_priorities,
                      CheckMemory::Create(memory, made.drawn.size() * sizeof(double)));
  GR_ASSIGN_OR_RETURN(const CheckMemory sides, CheckMemory::Of(memory, made.sides()));
  GR_ASSIGN_OR_RETURN(const CheckMemory lengths,
                      CheckMemory::Create(memory, made.drawn.size() * made.columns * 4));
  const Picked picked{drawn.data<uint32_t>(),
                      static_cast<uint32_t>(made.drawn.size()),
                      rows.data<Row>(),
                      pieces.data<RowPiece>(),
                      picked_priorities.data<double>(),
                      made.padded ? sides.data<PickedSide>() : nullptr,
                      lengths.data<std::byte>()};
  GR_RETURN_IF_ERROR(backend.Pick(directory, picked, nullptr));
  GR_RETURN_IF_ERROR(Note("picked rows", rows, &written));
  GR_RETURN_IF_ERROR(Note("picked pieces", pieces, &written));
  GR_RETURN_IF_ERROR(Note("picked priorities", picked_priorities, &written));
  GR_RETURN_IF_ERROR(Note("picked lengths", lengths, &written));

  GR_ASSIGN_OR_RETURN(const CheckMemory probabilities, CheckMemory::Of(memory, made.probabilities));
  GR_ASSIGN_OR_RETURN(const CheckMemory weights,
                      CheckMemory::Create(memory, made.probabilities.size() * sizeof(float)));
  GR_RETURN_IF_ERROR(backend.Weights(probabilities.data<double>(),
                                     static_cast<uint32_t>(made.probabilities.size()), made.beta,
                                     weights.data<float>(), nullptr));
  GR_RETURN_IF_ERROR(Note("importance weights", weights, &written));
  return written;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CheckDraws(DrawBackend& backend, uint64_t seed,
                                                    int rounds) {
  if (rounds < 1) return base::InvalidArgument("rounds (", rounds, ") must be >= 1.");
  const auto twin = MakeDrawTwin();
  base::Philox random(seed);
  std::vector<std::string> differences;
  for (int round = 0; round < rounds; ++round) {
    const Case made(random);
    GR_ASSIGN_OR_RETURN(const Written written, Run(backend, made));
    GR_ASSIGN_OR_RETURN(const Written expected, Run(*twin, made));
    for (size_t i = 0; i < written.size(); ++i) {
      if (written[i] == expected[i]) continue;
      differences.push_back(absl::StrCat(written[i].first, " differ from the twin's (seed ", seed,
                                         ", round ", round, ")."));
    }
  }
  return differences;
}

}  // namespace gear_reverb::device
