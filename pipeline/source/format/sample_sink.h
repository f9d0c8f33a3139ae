// A sample that a format finds in a blob, and who takes it. Values and an interface; each format is
// a function scan_FORMAT(BlobReader&, const FieldChoice&, SampleSink&) in a header of its own,
// which calls the sink for each sample in the order of the blob, and throws BlobError for what is
// wrong with the blob's content.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pipeline/source/format/found_objects.h"
#include "pipeline/source/format/found_target.h"

namespace stoker {

// How the bytes of an image lie in its blob.
enum class BlobStorage : uint8_t {
  bytes,   // as they are
  snappy,  // in a page of Parquet
  zstd,    // in a page of Parquet
  file,    // not in the blob: the sample's name is the path of a file of its own
};

// A class's number, the text that names a class, or none.
using BlobLabel = std::variant<std::monostate, int64_t, std::string_view>;

struct FoundSample {
  BlobStorage storage = BlobStorage::bytes;
  // In the blob: where the image begins; for packed bytes, where unpacking begins.
  int64_t offset = 0;
  int64_t length = 0;  // bytes of the image
  // Packed bytes only: how many bytes to take at `offset` so that `skip` + `length` bytes come out
  // of them; the image is the last `length` of these (see unpack.h).
  int64_t packed_length = 0;
  int64_t skip = 0;
  // Unique in the blob. Empty: the sample's place in it is its name ("#17"). It has no NUL.
  std::string_view name;
  BlobLabel label;
  // The numbers of each of FieldChoice::targets, in that order.
  std::span<const FoundTarget> targets{};
  // Those that FieldChoice::objects asked for; null: none were.
  const FoundObjects* objects = nullptr;
  // Where a list names it, from 1; for messages. 0: in no list.
  int64_t line = 0;
};

// A field whose numbers become a column of targets.
struct TargetField {
  std::string field;  // as for an image: a column, a key; in a tar shard "json:FIELD" or "npy"
  std::string name;   // of the column
  std::optional<TargetType> type{};  // none: FoundTarget::type of the first sample
  bool varies = false;               // samples have different numbers of values; there is a type
  bool is_text() const { return type == TargetType::text; }
};

// Which fields of a format to take; "" leaves the choice to the format, which takes what its users
// usually have, and throws BlobError with the fields that are there if it finds none of these. What
// a field is depends on the format: an extension in a tar shard, a column, a key of a record.
struct FieldChoice {
  std::string image;
  std::string label;  // "none": the samples have no labels (each gets std::monostate)
  std::vector<TargetField> targets{};
  ObjectField objects{};
  // Fields with pictures of another kind (label images), that none is taken for the image.
  std::vector<std::string> other_images{};
  bool no_labels() const { return label == "none"; }
};

class SampleSink {
 public:
  virtual ~SampleSink() = default;
  // The views in `sample` are valid during the call.
  virtual void add(const FoundSample& sample) = 0;
  // Notes something that is no sample: `reason` completes "12 entries are left out (REASON)".
  virtual void leave_out(std::string_view reason, std::string_view name) = 0;
  // The names of classes 0, 1, ..., where a format has them beside numbers. At most once per blob.
  virtual void set_class_names(const std::vector<std::string>& names) = 0;
  // The same for the classes of objects.
  virtual void set_object_names(const std::vector<std::string>& names) = 0;
};

}  // namespace stoker
