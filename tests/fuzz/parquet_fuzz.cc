// Images in Parquet files: BlobError, or samples that lie in the file, and come out of it whole
// where they are packed. Input: (column of images, column of labels and
// those of targets, file).
#include <cstdlib>

#include "pipeline/source/format/parquet.h"
#include "pipeline/source/format/unpack.h"
#include "tests/fuzz/fuzz_parts.h"
#include "tests/fuzz/fuzz_targets.h"

namespace stoker {
namespace {

// Unpacks no more than this for each input, so that there is time for others.
constexpr int64_t kMaxUnpacked = 1 << 20;

class CheckingSink final : public SampleSink {
 public:
  CheckingSink(std::span<const uint8_t> blob, const FieldChoice& fields)
      : blob_(blob), fields_(fields) {}

  void add(const FoundSample& sample) override {
    const bool packed = sample.storage != BlobStorage::bytes;
    const int64_t size = std::ssize(blob_);
    const int64_t taken = packed ? sample.packed_length : sample.length;
    if (sample.length < 0 || taken < 0 || sample.offset < 0 || sample.skip < 0) std::abort();
    if (sample.offset > size || taken > size - sample.offset) std::abort();
    if (!sample.name.empty() || ++samples_ > 8 * size) std::abort();
    if (const auto* text = std::get_if<std::string_view>(&sample.label)) {
      for (const char c : *text) sum_ += c;
    }
    check_fuzz_targets(sample, fields_);
    if (packed) take_out(sample);
  }
  void leave_out(std::string_view, std::string_view) override { std::abort(); }
  void set_object_names(const std::vector<std::string>&) override {}
  void set_class_names(const std::vector<std::string>& names) override {
    if (samples_ > 0 || names_++ > 0 || names.empty()) std::abort();
  }
  int64_t sum() const { return sum_; }

 private:
  void take_out(const FoundSample& sample) {
    const int64_t bytes = sample.skip + sample.length;
    if (bytes > kMaxUnpacked - unpacked_) return;
    unpacked_ += bytes;
    std::vector<uint8_t> out(static_cast<size_t>(bytes));
    const std::span<const uint8_t> packed = blob_.subspan(
        static_cast<size_t>(sample.offset), static_cast<size_t>(sample.packed_length));
    if (!can_unpack(sample.storage) || !unpack(sample.storage, packed, out).empty()) std::abort();
  }

  const std::span<const uint8_t> blob_;
  const FieldChoice& fields_;
  int64_t samples_ = 0, unpacked_ = 0, sum_ = 0;
  int names_ = 0;
};

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  const FuzzParts parts = split_fuzz_parts(data, size);
  const std::span<const uint8_t> file(reinterpret_cast<const uint8_t*>(parts[2].data()),
                                      parts[2].size());
  BlobReader blob("input", file);
  const FieldChoice fields = fuzz_choice(parts[0], parts[1]);
  CheckingSink sink(file, fields);
  try {
    scan_parquet(blob, fields, sink);
  } catch (const BlobError&) {
  }
  return sink.sum() == INT64_MIN ? 1 : 0;
}
