// A file of seek indexes. Its checksum is corrected first (it guards against accidents, not against
// forgery): looking up names in a file that open() accepts then must be safe.
#include <cstdlib>
#include <cstring>

#include "pipeline/seek_index/file.h"
#include "tests/support/temp_folder.h"

namespace {

void seal(std::string& file) {
  using namespace stoker;
  SeekFileHeader header;
  if (file.size() < sizeof header) return;
  std::memcpy(&header, file.data(), sizeof header);
  if (header.table_at > file.size()) return;
  std::vector<SeekFileEntry> table((file.size() - header.table_at) / sizeof(SeekFileEntry));
  if (!table.empty()) {
    std::memcpy(table.data(), file.data() + header.table_at, table.size() * sizeof(SeekFileEntry));
  }
  header.checksum = seek_file_checksum(header, table);
  std::memcpy(file.data(), &header, sizeof header);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  static const TempFolder folder;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  seal(bytes);
  std::string problem;
  const auto file = SeekIndexFile::open(folder.write("seek", bytes), problem);
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
