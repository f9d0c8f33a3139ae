// Objects in records: BlobError or InvalidField, or pieces that are safe to use. Input: (a letter
// for the format, objects_from, file); the letter j: the file is the JSON of one record.
#include <cstdlib>

#include "pipeline/files/invalid_field.h"
#include "pipeline/source/annotated/record_code.h"
#include "pipeline/source/format/mds.h"
#include "pipeline/source/format/parquet.h"
#include "pipeline/source/format/tar.h"
#include "pipeline/source/format/tfrecord.h"
#include "tests/fuzz/check_fuzz_set.h"
#include "tests/fuzz/fuzz_parts.h"
#include "tests/support/tfrecord_maker.h"

namespace stoker {
namespace {

// Keeps the pieces of a file's first samples.
class PieceSink final : public SampleSink {
 public:
  explicit PieceSink(BoxFormat boxes) : encoder_(boxes) {}

  void add(const FoundSample& sample) override {
    if (sample.objects == nullptr) std::abort();
    add(*sample.objects);
  }
  void add(const FoundObjects& objects) {
    constexpr size_t kMostPieces = 1000;
    if (pieces_.size() < kMostPieces) encoder_.append(objects, pieces_.emplace_back());
  }
  void leave_out(std::string_view, std::string_view) override {}
  void set_class_names(const std::vector<std::string>&) override { std::abort(); }
  void set_object_names(const std::vector<std::string>& names) override { names_ = names; }

  void check() const {
    AnnotationInfo info;
    try {
      info = encoder_.kinds().info(names_);
    } catch (const std::runtime_error&) {
      return;
    }
    Annotations found;
    for (const std::string& piece : pieces_) {
      if (!read_record(info, piece, found).empty()) continue;
      const size_t objects = found.objects.size();
      if (found.keypoints.size() != objects * static_cast<size_t>(info.keypoints)) std::abort();
      for (size_t k = 0; k < objects; ++k) check_fuzz_object(info, found, k);
    }
  }

 private:
  RecordEncoder encoder_;
  std::vector<std::string> names_;
  std::vector<std::string> pieces_;
};

void scan_records(char format, const std::string& file, const FieldChoice& fields,
                  PieceSink& sink) {
  BlobReader blob("x", {reinterpret_cast<const uint8_t*>(file.data()), file.size()});
  if (format == 't') scan_tfrecord(blob, fields, sink);
  if (format == 'm') scan_mds(blob, fields, sink);
  if (format == 'p') scan_parquet(blob, fields, sink);
  if (format == 'w') scan_tar(blob, fields, sink);
  if (format == 'j') {
    sink.add(FoundObjects{.json = file, .json_path = {}, .columns = {}, .problem = {}});
  }
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  const FuzzParts parts = split_fuzz_parts(data, size);
  if (parts[0].empty() || parts[1].empty()) return 0;
  std::string file(parts[2]);
  FieldChoice fields{.image = {}, .label = "none"};
  fields.objects = {std::string(parts[1])};
  if (parts[0][0] == 't') repair_checksums(file);
  PieceSink sink(parts[0].size() % 2 == 0 ? BoxFormat::cxcywh : BoxFormat::xywh);
  try {
    scan_records(parts[0][0], file, fields, sink);
  } catch (const BlobError&) {
  } catch (const InvalidField&) {
  }
  sink.check();
  return 0;
}
