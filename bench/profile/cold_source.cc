#include "bench/profile/cold_source.h"

#include <algorithm>
#include <stdexcept>

#include "bench/profile/storage_probe.h"

namespace stoker {
namespace {

constexpr SampleId kLooked = 8;  // samples, to see whether the files went

}  // namespace

ColdSource::ColdSource(const Source& files) : files_(files) {
  int64_t evicted = 0;
  for (SampleId id = 0; id < files.size(); ++id) evicted += evict_from_cache(files, id);
  if (evicted == 0) {
    throw std::invalid_argument(
        "--cold: " + files.root() +
        ": its samples are no files that could be put out of the page cache");
  }
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  for (SampleId id = 0; id < std::min(kLooked, files.size()); ++id) {
    const bool stays = files.read_cached(id, buffer, bytes);
    evict_from_cache(files, id);  // to look makes the kernel read ahead
    if (!stays) continue;
    throw std::invalid_argument("--cold: " + files.root() + "/" + files.name(id) +
                                " stays in memory (a file system in memory, or somebody maps it): "
                                "storage cannot be measured cold here");
  }
}

ReadStatus ColdSource::read(SampleId id, std::vector<uint8_t>& buffer,
                            std::span<const uint8_t>& bytes) const {
  const ReadStatus status = files_.read(id, buffer, bytes);
  evict_from_cache(files_, id);
  return status;
}

}  // namespace stoker
