#include "tests/support/fake_source.h"

#include <algorithm>
#include <thread>

#include "pipeline/files/file_buffer.h"

namespace stoker {

FakeSource::FakeSource(std::vector<std::vector<uint8_t>> files, int64_t samples, int classes)
    : info_{.size = samples, .fingerprint = static_cast<uint64_t>(samples)},
      files_(std::move(files)) {
  for (int i = 0; i < classes; ++i) info_.class_names.push_back("class" + std::to_string(i));
}

void FakeSource::fail(SampleId id, const std::string& message) { failures_[id] = message; }

void FakeSource::replace(SampleId id, std::vector<uint8_t> bytes) {
  replaced_[id] = std::move(bytes);
}

void FakeSource::delay(SampleId id, std::chrono::microseconds time) { delays_[id] = time; }

ReadStatus FakeSource::read(SampleId id, std::vector<uint8_t>& buffer,
                            std::span<const uint8_t>& bytes) const {
  ++reads_;
  const int now = ++under_way_;
  for (int most = most_at_once_; most < now && !most_at_once_.compare_exchange_weak(most, now);) {
  }
  const auto delay = delays_.find(id);
  const auto time =
      delay_all_ + (delay == delays_.end() ? std::chrono::microseconds(0) : delay->second);
  if (time.count() > 0) std::this_thread::sleep_for(time);
  --under_way_;
  return give(id, buffer, bytes);
}

bool FakeSource::read_cached(SampleId id, std::vector<uint8_t>& buffer,
                             std::span<const uint8_t>& bytes) const {
  ++tries_;
  if (!cached_.contains(id) || !give(id, buffer, bytes).ok) return false;
  ++cached_reads_;
  return true;
}

ReadStatus FakeSource::give(SampleId id, std::vector<uint8_t>& buffer,
                            std::span<const uint8_t>& bytes) const {
  const auto failure = failures_.find(id);
  if (failure != failures_.end()) return {false, failure->second};
  const auto replaced = replaced_.find(id);
  // Goes through the buffer, as with files, so that a caller that keeps `bytes` too long fails.
  const std::vector<uint8_t>& file = replaced != replaced_.end()
                                         ? replaced->second
                                         : files_[static_cast<size_t>(id) % files_.size()];
  grow_file_buffer(buffer, file.size());
  std::ranges::copy(file, buffer.begin());
  bytes = std::span(buffer).first(file.size());
  return {};
}

}  // namespace stoker
