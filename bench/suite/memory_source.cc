#include "bench/suite/memory_source.h"

#include <stdexcept>

namespace stoker {
namespace {

constexpr int64_t kMaxFiles = 2000;
constexpr size_t kMaxBytes = size_t{256} << 20;
constexpr int64_t kTimesPerEpoch = 100;

}  // namespace

MemorySource::MemorySource(const Source& files) : files_(files), info_(files.info()) {
  size_t total = 0;
  std::vector<uint8_t> buffer;
  for (SampleId id = 0; id < files.size() && count() < kMaxFiles && total < kMaxBytes; ++id) {
    std::span<const uint8_t> bytes;
    if (!files.read(id, buffer, bytes).ok) bytes = {};
    bytes_.emplace_back(bytes.begin(), bytes.end());
    total += bytes.size();
  }
  if (total == 0) throw std::runtime_error(files.root() + ": no file could be read");
  info_.size = count() * kTimesPerEpoch;
}

std::string MemorySource::name(SampleId id) const {
  return files_.name(id % count()) + "#" + std::to_string(id / count());
}

ReadStatus MemorySource::read(SampleId id, std::vector<uint8_t>&,
                              std::span<const uint8_t>& bytes) const {
  bytes = bytes_[static_cast<size_t>(id % count())];
  return bytes.empty() ? ReadStatus{false, "could not be read into memory"} : ReadStatus{};
}

}  // namespace stoker
