// The targets of a sample besides its label: columns of numbers with a fixed shape, such as the
// probabilities of all classes, and columns that vary, such as captions and tokens. They stay as
// they are: boxes do not move with the pixels. Values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stoker {

// Texts are UTF-8 and always vary. Their values are bytes: one or several texts, each ended by a
// NUL.
enum class TargetType : uint8_t { uint8, int32, int64, float32, float16, bfloat16, text };

struct TargetColumn {
  std::string name;  // unique among the columns of a source
  TargetType type = TargetType::float32;
  std::vector<int64_t> shape{};  // of one sample; empty: a single number
  // Each sample has a number of values of its own, and there is no shape. In a batch (as opposed to
  // a source) the shape says for how many values a row has place.
  bool varies = false;

  int64_t numbers() const;       // in one sample: the product of the shape; 0 if it varies
  int bytes() const;             // of one sample
  std::string describe() const;  // "'tags': float32 (40)", "'tokens': int32 []", "'caption': text"
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
  // Where to write the values of each column: TargetColumn::bytes() bytes, row-major. Those of
  // columns that vary are not used.
  std::vector<std::byte*> columns{};
  // The values of each column that varies, as long as the source, the sample's bytes and this are
  // there; of others nothing. As many as `columns`.
  std::vector<std::span<const std::byte>> varying{};
  // Memory for them, where a source has none of its own; one for each column.
  std::vector<std::vector<uint8_t>> memory{};
  // Says what is wrong with the values of columns that vary, which makes it a bad sample; "":
  // nothing. The caller clears it.
  std::string problem{};
};

}  // namespace stoker
