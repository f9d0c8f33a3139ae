// A file of seek indexes. Its seal is corrected first (it guards against accidents, not against
// forgery): looking up names in a file that open() accepts then must be safe.
#include <cstdlib>

#include "pipeline/seek_index/file.h"
#include "tests/support/sealed_again.h"
#include "tests/support/temp_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  static const TempFolder folder;
  std::string problem;
  const std::string path =
      folder.write("seek", sealed_again({reinterpret_cast<const char*>(data), size}));
  const auto file = SeekIndexFile::open(path, problem);
  if ((file == nullptr) == problem.empty()) std::abort();
  if (file == nullptr) return 0;
  std::vector<uint8_t> buffer;
  unsigned sum = 0;
  for (const char* name : {"0", "1", "2", "3"}) {  // the names of the seeds
    const std::span<const uint8_t> index = file->read(name, buffer).index;
    if (static_cast<int64_t>(index.size()) > file->largest_index_bytes()) std::abort();
    for (const uint8_t byte : index) sum += byte;
  }
  static volatile unsigned all_was_read;
  all_was_read = sum;
  return file->count() >= 0 ? 0 : -1;
}
