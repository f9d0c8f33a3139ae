// One batch out of a Feed, for as long as anybody looks at it: the Holder of its arrays. Internal
// to feed.cc and lease.cc.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "python/core/feed.h"

namespace stoker::python {

class Feed::Lease final : public Holder, public std::enable_shared_from_this<Feed::Lease> {
 public:
  Lease(std::shared_ptr<Feed> feed, DeviceBatch batch, Step step, const Event& ready);
  ~Lease() override;

  void synchronize() override;
  std::shared_ptr<void> read_on(uintptr_t stream) override;
  void copy_to_host(void* target, const void* source, size_t bytes) override;

 private:
  friend class Feed::Reader;
  void check() const;  // throws in a forked child; aborts if the memory is another step's by now
  const std::shared_ptr<Feed> feed_;
  const Event& ready_;  // the feed's, recorded again only when this lease is gone
  std::mutex mutex_;
  Returned returned_;  // what goes back; its readers are guarded by mutex_
};

}  // namespace stoker::python
