// TFRecord files: BlobError, or samples that lie in the file, one after the other. Input: (image
// field, label field and those of targets, file); the file is read as it is and with checksums that
// are right, because no mutation finds those.
#include <cstdlib>

#include "pipeline/source/format/crc32c.h"
#include "pipeline/source/format/tfrecord.h"
#include "tests/fuzz/fuzz_parts.h"
#include "tests/fuzz/fuzz_targets.h"
#include "tests/support/tfrecord_maker.h"

namespace stoker {
namespace {

class RecordSampleChecker final : public SampleSink {
 public:
  RecordSampleChecker(const std::string& file, const FieldChoice& fields)
      : file_(file), fields_(fields) {}

  int64_t samples() const { return samples_; }
  void add(const FoundSample& sample) override {
    const int64_t size = std::ssize(file_);
    // A header is before an image, and a checksum after it.
    if (sample.offset < end_ + 12 || sample.length < 0) std::abort();
    if (sample.offset > size - 4 || sample.length > size - 4 - sample.offset) std::abort();
    if (sample.storage != BlobStorage::bytes || !sample.name.empty()) std::abort();
    if (const auto* text = std::get_if<std::string_view>(&sample.label)) {
      const char* const begin = file_.data();
      if (text->data() < begin || text->data() + text->size() > begin + size) std::abort();
    }
    const bool has_label = !std::holds_alternative<std::monostate>(sample.label);
    if (has_label == (fields_.label == "none")) std::abort();
    check_fuzz_targets(sample, fields_);
    end_ = sample.offset + sample.length;
    ++samples_;
  }
  void leave_out(std::string_view, std::string_view) override { std::abort(); }
  void set_class_names(const std::vector<std::string>&) override { std::abort(); }

 private:
  const std::string& file_;
  const FieldChoice& fields_;
  int64_t end_ = 0, samples_ = 0;
};

void check_scan(const std::string& file, const FieldChoice& fields) {
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(file.data()), file.size());
  if (crc32c(bytes) != crc32c_by_table(bytes)) std::abort();
  BlobReader blob("blob", bytes);
  RecordSampleChecker checker(file, fields);
  try {
    scan_tfrecord(blob, fields, checker);
  } catch (const BlobError&) {
    return;
  }
  if (checker.samples() == 0) std::abort();
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  const FuzzParts parts = split_fuzz_parts(data, size);
  const FieldChoice fields = fuzz_choice(parts[0], parts[1]);
  std::string file(parts[2]);
  check_scan(file, fields);
  repair_checksums(file);
  check_scan(file, fields);
  return 0;
}
