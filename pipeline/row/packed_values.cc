#include "pipeline/row/packed_values.h"

#include <algorithm>
#include <cstring>

namespace stoker {

std::string offsets_name(const TargetColumn& column) { return column.name + "_offsets"; }

bool is_offsets(std::span<const TargetColumn> columns, size_t column) {
  return columns[column].varies && std::ranges::any_of(columns, [&](const TargetColumn& each) {
           return each.varies && offsets_name(each) == columns[column].name;
         });
}

PackedValues packed_values(const DeviceBatch& batch, std::span<const TargetColumn> columns,
                           size_t column) {
  const std::string name = offsets_name(columns[column]);
  const auto offsets = std::ranges::find(columns, name, &TargetColumn::name);
  const auto place = static_cast<size_t>(offsets - columns.begin());
  return {{reinterpret_cast<const int32_t*>(batch.target(place)),
           static_cast<size_t>(batch.shape().rows) + 1},
          batch.target(column)};
}

std::vector<std::byte> padded_values(const PackedValues& packed, std::span<const std::byte> fill,
                                     int64_t multiple, int64_t& longest) {
  const size_t rows = packed.offsets.size() - 1, bytes = fill.size();
  const auto length = [&](size_t row) {
    return static_cast<size_t>(packed.offsets[row + 1] - packed.offsets[row]);
  };
  size_t most = 0;
  for (size_t row = 0; row < rows; ++row) most = std::max(most, length(row));
  const auto step = static_cast<size_t>(multiple);
  const size_t places = (most + step - 1) / step * step;
  std::vector<std::byte> padded(rows * places * bytes);
  for (size_t row = 0; row < rows; ++row) {
    std::byte* out = padded.data() + row * places * bytes;
    const auto first = static_cast<size_t>(packed.offsets[row]);
    if (length(row) > 0) std::memcpy(out, packed.values + first * bytes, length(row) * bytes);
    out += length(row) * bytes;
    for (size_t i = length(row); i < places; ++i) out = std::ranges::copy(fill, out).out;
  }
  longest = static_cast<int64_t>(places);
  return padded;
}

}  // namespace stoker
