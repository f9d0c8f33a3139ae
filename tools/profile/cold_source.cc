#include "tools/profile/cold_source.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "tools/profile/storage_probe.h"

namespace stoker {
namespace {

// The number of samples whose files are checked to have left the page cache.
constexpr SampleId kLooked = 8;
// A page that the kernel writes or reclaims at the moment stays for a short time.
constexpr int kTries = 50;
constexpr auto kEvictPause = std::chrono::milliseconds(10);

bool stays(const Source& files, SampleId id) {
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  for (int i = 0; i < kTries; ++i) {
    if (i > 0) std::this_thread::sleep_for(kEvictPause);
    const bool is_there = files.storage().read_cached(id, buffer, bytes);
    // Checking a file makes the kernel read ahead, so the file is evicted once more.
    evict_from_cache(files, id);
    if (!is_there) return false;
  }
  return true;
}

}  // namespace

ColdSource::ColdSource(const Source& files) : ForwardingSource(files) {
  int64_t evicted = 0;
  for (SampleId id = 0; id < files.size(); ++id) evicted += evict_from_cache(files, id);
  if (evicted == 0) {
    throw std::invalid_argument(
        "--cold: " + files.root() +
        ": its samples are not files, so they cannot be dropped from the page cache");
  }
  for (SampleId id = 0; id < std::min(kLooked, files.size()); ++id) {
    if (!stays(files, id)) continue;
    throw std::invalid_argument("--cold: " + files.root() + "/" + files.name(id) +
                                " stays in memory (a file system in memory, or somebody maps it): "
                                "storage cannot be measured cold here");
  }
}

ReadStatus ColdSource::read(SampleId id, std::vector<uint8_t>& buffer,
                            std::span<const uint8_t>& bytes) const {
  evict_from_cache(source_, id);
  return source_.read(id, buffer, bytes);
}

bool ColdSource::read_pieces(SampleId id, const FileStamp& stamp, std::span<const BytePiece> pieces,
                             MayWait may_wait) const {
  if (may_wait == MayWait::no) return false;
  evict_from_cache(source_, id);
  return source_.storage().read_pieces(id, stamp, pieces, may_wait);
}

}  // namespace stoker
