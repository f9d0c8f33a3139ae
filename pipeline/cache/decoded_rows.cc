#include "pipeline/cache/decoded_rows.h"

#include "pipeline/cache/decoded_cache.h"
#include "pipeline/files/file_time.h"
#include "pipeline/source/blob/stored_location.h"
#include "pipeline/source/file_stamp.h"

namespace stoker {

DecodedRows::DecodedRows(const Source& source, const AugmentSpec& augment,
                         const FeedOptions& options)
    : source_(source),
      samples_(options.cache ? options.cache->open(source, augment, options.decode) : nullptr) {}

DecodedPicture DecodedRows::read(SampleId id, MayWait may_wait,
                                 std::vector<uint8_t>& buffer) const {
  if (!samples_ || is_announced(id)) return {};
  return samples_->read(id, version_stamp(source_, id), may_wait, buffer);
}

FileStamp DecodedRows::stamp_to_keep(SampleId id) const {
  if (!samples_ || !samples_->wants(id)) return {};
  return settled_stamp(version_stamp(source_, id), system_now_ns());
}

void DecodedRows::keep(SampleId id, const FileStamp& stamp, const DecodedPicture& picture) {
  if (picture.pixels.empty()) return;
  // A file that changed while it was read gave pixels of neither state.
  if (source_.storage().stamp(id) == stamp) samples_->keep(id, stamp, picture);
}

bool DecodedRows::announces(SampleId id) const {
  if (!samples_) return true;
  if (samples_->holds(id)) return false;
  const MutexLock lock(mutex_);
  ++announced_[id];
  any_announced_ = true;
  return true;
}

bool DecodedRows::is_announced(SampleId id) const {
  if (!any_announced_) return false;
  const MutexLock lock(mutex_);
  return announced_.contains(id);
}

void DecodedRows::was_read(SampleId id) {
  if (!any_announced_) return;
  const MutexLock lock(mutex_);
  const auto found = announced_.find(id);
  if (found != announced_.end() && --found->second == 0) announced_.erase(found);
}

std::optional<DecodedCacheStats> DecodedRows::stats() const {
  if (!samples_) return std::nullopt;
  DecodedCacheStats stats = samples_->stats();
  stats.hits = hits_;
  stats.misses = misses_;
  return stats;
}

}  // namespace stoker
