// MDS shards: BlobError, or samples that lie in the file, one after the other; and indexes of their
// folders: std::runtime_error, or files in the folder. Input: (image field and
// those of targets, index, shard); an index
// of 0 bytes is none.
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "pipeline/source/format/mds.h"
#include "tests/fuzz/fuzz_parts.h"
#include "tests/fuzz/fuzz_targets.h"
#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

class MdsSampleChecker final : public SampleSink {
 public:
  MdsSampleChecker(std::span<const uint8_t> file, const FieldChoice& fields)
      : file_(file), fields_(fields) {}

  int64_t samples() const { return samples_; }
  void add(const FoundSample& sample) override {
    const int64_t size = std::ssize(file_);
    if (sample.offset < end_ || sample.length < 0) std::abort();
    if (sample.offset > size || sample.length > size - sample.offset) std::abort();
    if (sample.storage != BlobStorage::bytes || !sample.name.empty()) std::abort();
    if (const auto* text = std::get_if<std::string_view>(&sample.label)) {
      const auto* const begin = reinterpret_cast<const char*>(file_.data());
      if (text->data() < begin || text->data() + text->size() > begin + size) std::abort();
    }
    check_fuzz_targets(sample, fields_);
    end_ = sample.offset + sample.length;
    ++samples_;
  }
  void leave_out(std::string_view, std::string_view) override { std::abort(); }
  void set_class_names(const std::vector<std::string>&) override { std::abort(); }

 private:
  const std::span<const uint8_t> file_;
  const FieldChoice& fields_;
  int64_t end_ = 0, samples_ = 0;
};

void check_shard(std::span<const uint8_t> file, const FieldChoice& fields) {
  BlobReader blob("blob", file);
  MdsSampleChecker checker(file, fields);
  try {
    scan_mds(blob, fields, checker);
  } catch (const BlobError&) {
    return;
  }
  if (checker.samples() == 0) std::abort();
}

void check_index(std::string_view index) {
  namespace fs = std::filesystem;
  static const TempFolder outside;
  static const std::string folder = outside.make_folder("folder");
  static const std::string shard = outside.write("folder/a.mds", "12345");
  static const std::string other = outside.write("outside.mds", "12345");
  outside.write("folder/index.json", index);
  const auto bytes_of = [](const std::string& name) -> int64_t {
    std::error_code error;
    const bool is_there = fs::is_regular_file(folder + "/" + name, error);
    return is_there ? static_cast<int64_t>(fs::file_size(folder + "/" + name)) : -1;
  };
  try {
    for (const std::string& name : mds_shards(folder, std::string(index), bytes_of)) {
      const std::string path = folder + "/" + name;
      if (!fs::equivalent(path, shard) && !fs::equivalent(path, folder + "/index.json")) {
        std::abort();
      }
    }
  } catch (const std::runtime_error&) {
  }
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  const FuzzParts parts = split_fuzz_parts(data, size);
  const std::span<const uint8_t> file(reinterpret_cast<const uint8_t*>(parts[2].data()),
                                      parts[2].size());
  FieldChoice fields = fuzz_choice("", parts[0]);
  std::swap(fields.image, fields.label);
  check_shard(file, fields);
  fields.label = "none";
  check_shard(file, fields);
  if (!parts[1].empty()) check_index(parts[1]);
  return 0;
}
