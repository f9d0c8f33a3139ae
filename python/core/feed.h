// A Loader for Python's way of holding things: batches that are kept by whatever looks at them, on
// any thread, for as long as it likes.
//
// Feed owns the stream on which its batches are leased, the Loader with all its threads, and on a
// GPU the memory that images are normalised into. A Lease is one batch out of the feed: it holds
// the images' memory and nothing else of the feed, which may end before it. It is of one step and
// is never used again: what was released cannot be reached through it.
//
// On a host a batch that is held when the ring needs its slab keeps the slab, and the ring gets
// other memory. On a GPU the slots are bounded: there it is an error before the call, because the
// Stager would abort. What is lent is given back in the order of the device's work.
//
// Threads: any. Nothing here calls Python; blocking calls say so, for who must let go of its lock.
// The last owner's end of a feed, or of a lease on a GPU after its feed, blocks, and lets go of the
// lock by itself if it has it. After fork() the child has none of the threads: every call there
// throws, destructors leave all as it is. Errors: std::invalid_argument, std::runtime_error;
// FeedError for what next() met.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipeline/loader.h"
#include "python/core/array.h"
#include "staging/device.h"
#include "staging/mutex.h"
#include "staging/normalise.h"

namespace stoker::python {

struct FeedError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What `images` shows.
struct ImageFormat {
  std::optional<PixelType> type;        // none: uint8 as decoded
  PixelOrder order = PixelOrder::nhwc;  // of the bytes in memory
  bool channels_second = false;         // show (rows, 3, height, width) whatever the order
  std::array<float, 3> mean{};          // of pixels / 255
  std::array<float, 3> stddev{1, 1, 1};
};

// One batch. On a host only the images are lent: the rest are copies.
struct Batch {
  BatchHeader header;
  Array images;   // (rows, height, width, 3) or (rows, 3, height, width)
  Array labels;   // (rows) int32
  Array weights;  // (rows) float32
  Array ids;      // (rows) int64, on the host
};

struct Loan;

class Feed : public std::enable_shared_from_this<Feed> {
 public:
  struct Options {
    std::string device = "cpu:0";
    ImageFormat format;
    bool copy = false;  // every batch gets its memory for good, on a host
    // Fill the images' memory with 0xDB when a lease ends, to find who reads on.
    bool poison = false;
  };
  static std::shared_ptr<Feed> make(std::shared_ptr<const Source> source,
                                    const AugmentSpec& augment, LoaderOptions loader,
                                    const Options& options);
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Blocks for at most `ms` milliseconds; whether next(end) would not wait for the feed now. Throws
  // std::runtime_error where a batch is held whose slot on a GPU the next one needs.
  bool wait_ready(Step end, int ms);
  // The next batch, if it is before step `end`. None: there is no other before `end`, or the feed
  // was closed; or, with `again`, somebody else took the one that was ready. std::bad_alloc: a
  // batch that is held keeps its memory, and there is no other; asking again is allowed.
  std::optional<Batch> next(Step end, bool& again);
  // Ends the feed, its threads and all its memory but that of batches held, which stay valid.
  // Blocks.
  void close() noexcept;

  void check_process() const;  // throws in a forked child
  Step next_step() const { return next_step_; }
  Step end_step() const { return end_step_; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  int max_leases() const { return max_leases_; }
  int held() const;  // leases out
  bool closed() const { return closed_; }
  const Source& source() const { return *source_; }
  // All of these throw std::runtime_error after close().
  LoaderState state() const;
  // Throws what Loader::resume_step throws.
  void check_state(const LoaderState& state, uint64_t seed) const;
  LoaderStats stats() const;
  MemoryPlan memory_plan() const;  // with the memory of normalised images as slot_bytes

 private:
  struct Desk;
  class Lease;

  Feed(std::shared_ptr<const Source> source, const AugmentSpec& augment, LoaderOptions loader,
       const Options& options);
  bool in_child() const;
  void drain_soon() noexcept;
  bool drain_if_idle() noexcept;
  void drain() noexcept REQUIRES(stream_mutex_) REQUIRES_SHARED(running_mutex_);
  void poison(const Loan& returned) noexcept REQUIRES(stream_mutex_)
      REQUIRES_SHARED(running_mutex_);
  void make_room() REQUIRES(stream_mutex_) REQUIRES_SHARED(running_mutex_);
  void keep_all() noexcept REQUIRES_SHARED(running_mutex_);
  static void give(DeviceBatch& leased, Loan& loan);
  Batch lend(DeviceBatch batch) REQUIRES(stream_mutex_) REQUIRES_SHARED(running_mutex_);
  Array images_of(const DeviceBatch& batch, Step step) REQUIRES(stream_mutex_)
      REQUIRES_SHARED(running_mutex_);
  Loader& running() const REQUIRES_SHARED(running_mutex_);
  bool on_host() const { return where_ == DlDevice{}; }
  size_t slot_of(Step step) const { return static_cast<size_t>(step) % ready_.size(); }

  // Constant after construction.
  const pid_t process_;
  const std::shared_ptr<const Source> source_;
  const Options options_;
  DlDevice where_;
  const std::shared_ptr<Device> device_;
  std::shared_ptr<Desk> desk_;
  Step end_step_ = 0;
  int64_t steps_per_epoch_ = 0;
  int max_leases_ = 0;
  size_t images_bytes_ = 0;

  std::atomic<bool> closed_{false};
  // Held, shared, by who uses what is below; close() takes it alone. Taken before all others.
  mutable SharedMutex running_mutex_;
  Mutex stream_mutex_ ACQUIRED_AFTER(running_mutex_);  // taken before Desk::mutex
  std::atomic<Step> next_step_;                        // written under stream_mutex_
  // As large as the images; or none.
  std::unique_ptr<Memory> poison_ GUARDED_BY(running_mutex_);
  std::unique_ptr<Stream> compute_ GUARDED_BY(stream_mutex_);
  std::unique_ptr<Normaliser> normaliser_;  // on a GPU, if images are not uint8
  // Of normaliser_, one per lease.
  std::vector<std::shared_ptr<Memory>> outputs_ GUARDED_BY(running_mutex_);
  std::vector<std::shared_ptr<Event>> ready_;                  // one per lease: its bytes are there
  std::unique_ptr<Loader> loader_ GUARDED_BY(running_mutex_);  // null after close()
};

}  // namespace stoker::python
