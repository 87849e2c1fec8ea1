#include "native/device/gather_cases.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "native/device/casts.h"

namespace gear_reverb::device {
namespace {

using Generator = std::mt19937_64;

int64_t Random(Generator& random, int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(random);
}

// Mostly small numbers, now and then a large one.
int64_t RandomSize(Generator& random, int64_t most) {
  return Random(random, 0, std::min<int64_t>(most, int64_t{1} << Random(random, 0, 22)));
}

void AddRandomRow(Generator& random, GatherCase& made, int64_t largest, uint64_t* output_end) {
  // Half of the rows are copies: of them there are several ways.
  const auto kind = static_cast<RowKind>(std::max<int64_t>(Random(random, -3, 4), 0));
  const int64_t in = SourceBytes(kind), out = OutputBytes(kind);
  // In half of the rows source and output are aligned alike.
  const int64_t unit = Random(random, 0, 1) == 0 ? 1 : 16;
  uint64_t destination = *output_end + RandomSize(random, 200);
  destination += -destination % (out * unit);
  std::vector<int64_t> pieces(Random(random, 0, 4));
  int64_t elements = 0;
  for (int64_t& piece : pieces) {
    elements += piece = RandomSize(random, largest / in) / unit * unit;
  }
  if (kind == RowKind::kMask) elements = RandomSize(random, largest);
  int64_t begin = 0, window = elements;
  if (Random(random, 0, 1) == 0) {  // Else all of the source, as most batches have it.
    begin = Random(random, -elements - 3, elements + 3) / unit * unit;
    window = RandomSize(random, 2 * elements + 3);
  }
  if (kind == RowKind::kMask) {
    made.plan.AddMask(destination, begin, window, elements);
  } else {
    made.plan.AddRow(kind, destination, begin * in, window * in);
    for (const int64_t piece : pieces) {
      const int64_t at =
          Random(random, 0, static_cast<int64_t>(made.source.size()) - piece * in) / unit * unit;
      made.plan.AddPiece(made.source.data() + at, piece * in);
    }
  }
  *output_end = destination + window * out;
}

// One output element of a row, from source element number `index`.
void WriteElement(const Row& row, const RowPiece* pieces, int64_t index, std::byte* to) {
  if (index < 0 || index * SourceBytes(row.kind) >= static_cast<int64_t>(row.source_bytes)) {
    std::memset(to, 0, OutputBytes(row.kind));
    return;
  }
  if (row.kind == RowKind::kMask) {
    *to = std::byte{1};
    return;
  }
  uint64_t position = index * SourceBytes(row.kind);
  const RowPiece* piece = pieces;
  uint64_t begin = 0;
  for (; position >= piece->end; ++piece) begin = piece->end;
  const std::byte* const from = piece->data + (position - begin);
  float value;
  uint16_t cast = 0;
  switch (row.kind) {
    case RowKind::kFloat32ToBfloat16:
      std::memcpy(&value, from, sizeof(value));
      cast = ToBfloat16(value);
      break;
    case RowKind::kFloat32ToFloat16:
      std::memcpy(&value, from, sizeof(value));
      cast = ToFloat16(value);
      break;
    case RowKind::kUint8ToFloat16: cast = UnitToFloat16(static_cast<uint8_t>(*from)); break;
    case RowKind::kCopy:
    case RowKind::kMask: *to = *from; return;
  }
  std::memcpy(to, &cast, sizeof(cast));
}

}  // namespace

GatherCase RandomGatherCase(uint64_t seed, CaseSize size) {
  Generator random(seed);
  GatherCase made;
  int64_t largest = 0;
  int rows = 0;
  switch (size) {
    case CaseSize::kSmall: largest = 300, rows = 400; break;
    case CaseSize::kMedium: largest = 50'000, rows = 40; break;
    case CaseSize::kLarge: largest = 2'000'000, rows = 4; break;
  }
  made.name = absl::StrCat(largest, "-byte rows, seed ", seed);
  made.source.resize(2 * largest + 1000);
  for (std::byte& byte : made.source) byte = static_cast<std::byte>(random());
  uint64_t output_end = 0;
  for (int i = 0; i < rows; ++i) AddRandomRow(random, made, largest, &output_end);
  made.expected.assign(output_end + 100, kPoison);
  for (const Row& row : made.plan.rows()) {
    const int64_t in = SourceBytes(row.kind), out = OutputBytes(row.kind);
    const auto elements = static_cast<int64_t>(row.window_bytes) / in;
    for (int64_t i = 0; i < elements; ++i) {
      WriteElement(row, made.plan.pieces().data() + row.first_piece, row.window_begin / in + i,
                   made.expected.data() + row.destination + i * out);
    }
  }
  return made;
}

std::string Difference(const GatherCase& gather_case, const std::vector<std::byte>& output) {
  const auto& expected = gather_case.expected;
  if (output.size() != expected.size())
    return absl::StrCat("The output has ", output.size(), " bytes.");
  const auto [at, other] = std::mismatch(expected.begin(), expected.end(), output.begin());
  if (at == expected.end()) return "";
  const uint64_t offset = at - expected.begin();
  std::string place = "after the rows";
  for (size_t i = 0; i < gather_case.plan.rows().size(); ++i) {
    const Row& row = gather_case.plan.rows()[i];
    const uint64_t bytes = row.window_bytes / SourceBytes(row.kind) * OutputBytes(row.kind);
    if (offset >= row.destination + bytes) continue;
    place = offset < row.destination
                ? absl::StrCat("between rows, before row ", i)
                : absl::StrCat("in row ", i, ", of kind ", static_cast<int>(row.kind), " and ",
                               bytes, " bytes, at its byte ", offset - row.destination);
    break;
  }
  return absl::StrCat(gather_case.name, ": output byte ", offset, " is ", static_cast<int>(*other),
                      " and should be ", static_cast<int>(*at), "; it is ", place, ".");
}

}  // namespace gear_reverb::device
