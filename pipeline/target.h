// The targets of a sample besides its label: columns of numbers with a fixed shape, such as the
// probabilities of all classes. They stay as they are: boxes do not move with the pixels. Values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stoker {

enum class TargetType : uint8_t { uint8, int32, int64, float32 };

struct TargetColumn {
  std::string name;  // unique among the columns of a source
  TargetType type = TargetType::float32;
  std::vector<int64_t> shape{};  // of one sample; empty: a single number

  int64_t numbers() const;       // in one sample: the product of the shape
  int bytes() const;             // of one sample
  std::string describe() const;  // "'tags': float32 (40)"
  bool operator==(const TargetColumn&) const = default;
};

int bytes_of(TargetType type);
std::string shape_text(const std::vector<int64_t>& shape);  // "(3, 4)"
const char* name_of(TargetType type);                       // as NumPy's: "float32"

// Throws std::invalid_argument if a name is empty or comes twice, an extent is below 1, or a sample
// would have more than 256 MiB of one column.
void check_targets(std::span<const TargetColumn> columns);

// The label and targets of one sample. Source::read_targets() fills it.
struct SampleTargets {
  int32_t label = 0;
  // Where to write the values of each column: TargetColumn::bytes() bytes, row-major.
  std::vector<std::byte*> columns{};
};

}  // namespace stoker
