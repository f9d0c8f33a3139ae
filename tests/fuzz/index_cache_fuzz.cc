// The cached list of an image folder. Its checksum is corrected first (it guards against accidents,
// not against forgery): what load_index() accepts then must be safe to use.
#include <xxhash.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "pipeline/source/folder_index.h"
#include "tests/support/temp_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  // The layout that pipeline/source/folder_index_cache.cc writes: magic, version, byte order;
  // length; checksum; payload.
  constexpr size_t kLengthAt = 16, kChecksumAt = 24, kPayloadAt = 32;
  static const TempFolder folder;
  std::string file(reinterpret_cast<const char*>(data), size);
  if (size >= kPayloadAt) {
    const uint64_t length = size - kPayloadAt;
    const uint64_t checksum = XXH3_64bits(file.data() + kPayloadAt, length);
    std::memcpy(file.data() + kLengthAt, &length, sizeof length);
    std::memcpy(file.data() + kChecksumAt, &checksum, sizeof checksum);
  }
  const std::string path = folder.write("index", file);
  FolderIndex index;
  if (!load_index(path, {"/", {""}, {""}}, index)) return 0;
  for (SampleId id = 0; id < index.size(); ++id) {
    const int64_t label = index.folder_of(id).label;
    if (label < 0 || label >= static_cast<int64_t>(index.class_names.size())) std::abort();
    if (index.folder_path(id).size() >= index.text.size()) std::abort();
    if (index.file_name(id).size() >= index.text.size()) std::abort();  // may be the same text
  }
  index.fingerprint();
  return 0;
}
