// The targets of an MDS shard: the numbers or texts in some of its columns. Owner: one scan.
// Threads: one at a time. Errors: BlobError with the sample's number and the column; what is wrong
// with a target that varies is its sample's problem.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/source/format/blob_reader.h"
#include "pipeline/source/format/number_bytes.h"
#include "pipeline/source/format/sample_sink.h"

namespace stoker {

struct MdsColumn {
  std::string name, encoding;
  std::optional<int64_t> size;  // bytes; none: each sample says
};

// For messages: "'label' (int)".
std::string describe(const MdsColumn& column);

// A value of a sample, in the blob.
struct MdsRange {
  int64_t offset, length;
};

// Returns whether a column's values can be targets: int, int8 to int64, uint8 to uint64, float16 to
// float64, str_int, str_float, and ndarray with a type and a shape ("ndarray:float32:2,2"; without
// them each value would say its own).
bool is_target_encoding(const std::string& encoding);

// Returns whether a column's values can be lists of numbers: ndarray, with a type and a shape or
// without (its values say then what they are).
bool is_array_encoding(const std::string& encoding);
// Sets `out` to the numbers of such a value. Returns "" or what is wrong.
std::string read_mds_array(const std::string& encoding, std::span<const uint8_t> value,
                           FoundTarget& out);

// How the bytes of a column's values make numbers.
struct MdsLayout {
  NumberForm form;
  std::vector<int64_t> shape;
};

class MdsTargets {
 public:
  MdsTargets(BlobReader& blob, const FieldChoice& fields) : blob_(blob), fields_(fields) {}
  // Adds the next target; `column` is the place of one that is_target_encoding(); one that varies
  // may be text or an array.
  void add(const std::vector<MdsColumn>& columns, size_t column);
  // Returns the numbers of a sample, given the places of all its values. They are valid until the
  // next call.
  std::span<const FoundTarget> read(size_t sample, const std::vector<MdsRange>& places);

 private:
  struct Column {
    size_t place;
    std::string encoding;
    std::optional<MdsLayout> layout;  // none: text
  };
  std::string read(const Column& column, const TargetField& field, const MdsRange& place,
                   FoundTarget& out);

  BlobReader& blob_;
  const FieldChoice& fields_;
  std::vector<Column> columns_;
  std::vector<FoundTarget> found_;
};

}  // namespace stoker
