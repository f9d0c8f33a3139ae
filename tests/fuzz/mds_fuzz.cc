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
  check_fuzz_scan(scan_mds, file, fields);
  fields.label = "none";
  check_fuzz_scan(scan_mds, file, fields);
  if (!parts[1].empty()) check_index(parts[1]);
  return 0;
}
