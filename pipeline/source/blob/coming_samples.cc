#include "pipeline/source/blob/coming_samples.h"

#include <algorithm>
#include <iterator>

namespace stoker {
namespace {

// Keeps the tables small where samples are tiny.
constexpr size_t kMaxKnown = 16 << 10;

}  // namespace

void ComingSamples::look_further(int64_t bytes,
                                 const std::function<SampleAddress(SampleId id)>& locate) {
  while (!ended_ && known_.size() < kMaxKnown && (known_.empty() || bytes_ < bytes)) {
    SampleId id = 0;
    const NextSample next = next_(id);
    if (next == NextSample::end) ended_ = true;
    if (next != NextSample::found) return;
    Sample sample{id, locate(id)};
    if (!sample.address.object || sample.address.length <= 0) continue;
    bytes_ += sample.address.length;
    known_.push_back(std::move(sample));
    by_offset_.emplace(offset_of(known_.back()), std::prev(known_.end()));
  }
}

const ComingSamples::Sample* ComingSamples::first_from(const StoredObject* object,
                                                       int64_t offset) const {
  const auto found = by_offset_.lower_bound({object, offset});
  return found != by_offset_.end() && found->first.first == object ? &*found->second : nullptr;
}

const ComingSamples::Sample* ComingSamples::last_before(const StoredObject* object,
                                                        int64_t offset) const {
  const auto behind = by_offset_.lower_bound({object, offset});
  if (behind == by_offset_.begin()) return nullptr;
  const auto found = std::prev(behind);
  return found->first.first == object ? &*found->second : nullptr;
}

ComingSamples::Sample ComingSamples::take(const Sample& sample) {
  const auto [first, last] = by_offset_.equal_range(offset_of(sample));
  const auto entry =
      std::find_if(first, last, [&](const auto& each) { return &*each.second == &sample; });
  const auto known = entry->second;
  by_offset_.erase(entry);
  bytes_ -= known->address.length;
  Sample taken = std::move(*known);
  known_.erase(known);
  return taken;
}

}  // namespace stoker
