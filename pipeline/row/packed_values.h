// The values of targets that vary (captions, tokens) in a batch, in Arrow's layout: those of all
// rows, one behind the other without gaps, in the column of the target's name, and where they end
// in NAME_offsets int32 (rows + 1): the values of row r are those from offsets[r] to offsets[r +
// 1]. Values of texts are bytes, of UTF-8; with TextChoice::all each text is ended by a NUL. All of
// it is on the host, and ends with the lease. Functions of their arguments alone; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pipeline/target.h"
#include "staging/device_batch.h"

namespace stoker {

// The name of the column with a column's offsets.
std::string offsets_name(const TargetColumn& column);

// Whether a column of Loader::targets() has another one's offsets.
bool is_offsets(std::span<const TargetColumn> columns, size_t column);

// The values of all rows of a batch, as above.
struct PackedValues {
  std::span<const int32_t> offsets;  // rows + 1
  const std::byte* values = nullptr;
};
// `columns`: Loader::targets(). REQUIRES: columns[column] varies and is no column of offsets.
PackedValues packed_values(const DeviceBatch& batch, std::span<const TargetColumn> columns,
                           size_t column);

// Returns the values as (rows, longest row rounded up to a multiple of `multiple`), filled up with
// `fill`, one value. `longest`: gets that number.
std::vector<std::byte> padded_values(const PackedValues& packed, std::span<const std::byte> fill,
                                     int64_t multiple, int64_t& longest);

}  // namespace stoker
