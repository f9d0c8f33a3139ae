// A Loader for Python's way of holding things: batches that are kept by whatever looks at them, on
// any thread, and are given back in the order of the device's work when nobody does.
//
// Feed owns the device, the stream on which its batches are leased, the Loader, and the memory that
// images are normalised into. A Lease is one batch out of the feed; it keeps the feed, so a tensor
// may outlive the Python object that it came from. A lease is of one step and is never used again:
// what was released cannot be reached through it.
//
// Threads: any. Nothing here calls Python; blocking calls say so, for who must let go of its lock.
// The last owner's end of the feed blocks, and lets go of the lock by itself if it has it.
// After fork() the child has none of the threads: every call there throws, destructors leave all as
// it is. Errors: std::invalid_argument, std::runtime_error; FeedError for what next() met.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipeline/loader.h"
#include "python/core/array.h"
#include "staging/device.h"
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

// One batch, as long as somebody looks at it.
struct Batch {
  BatchHeader header;
  Array images;   // (rows, height, width, 3) or (rows, 3, height, width)
  Array labels;   // (rows) int32
  Array weights;  // (rows) float32
  Array ids;      // (rows) int64, on the host
};

class Feed : public std::enable_shared_from_this<Feed> {
 public:
  struct Options {
    std::string device = "cpu:0";
    ImageFormat format;
    bool copy = false;  // batches are copies on the host, and leased to nobody
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
  // std::runtime_error where a batch is held whose memory the next one needs.
  bool wait_ready(Step end, int ms);
  // The next batch, if it is before step `end`. None: there is no other before `end`, or the feed
  // was closed; or, with `again`, somebody else took the one that was ready.
  std::optional<Batch> next(Step end, bool& again);
  void close() noexcept;  // ends the feed; leases stay valid

  void check_process() const;  // throws in a forked child
  Step next_step() const;
  Step end_step() const;
  int64_t steps_per_epoch() const;
  int max_leases() const;
  int held() const;  // leases out
  bool closed() const { return closed_; }
  const Source& source() const { return *source_; }
  LoaderState state() const;
  void check_state(const LoaderState& state) const;  // throws what Loader::resume_step throws
  LoaderStats stats() const;
  MemoryPlan memory_plan() const;  // with the memory of normalised images as slot_bytes

 private:
  class Lease;
  class Reader;
  // A lease that nobody looks at any more. The events: its readers' last work.
  struct Returned {
    DeviceBatch batch;
    std::vector<std::unique_ptr<Event>> readers;
    Step step = 0;
  };

  Feed(std::shared_ptr<const Source> source, const AugmentSpec& augment, LoaderOptions loader,
       const Options& options);
  bool in_child() const;
  void give_back(Returned returned) noexcept;
  void drain_soon() noexcept;
  void drain() noexcept;
  void poison(const Returned& returned) noexcept;
  void wait_for_poison() noexcept;
  void check_room() const;
  Batch lend(DeviceBatch batch);
  Batch copy_of(Batch batch) const;
  Array images_of(const DeviceBatch& batch, Step step);
  Stream& borrowed(uintptr_t handle);
  size_t slot_of(Step step) const { return static_cast<size_t>(step) % ready_.size(); }

  // Constant after construction.
  const pid_t process_;
  const std::shared_ptr<const Source> source_;
  const Options options_;
  DlDevice where_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Memory> poison_;   // as large as the images; none without Options::poison
  std::unique_ptr<Stream> compute_;  // guarded by stream_mutex_
  std::unique_ptr<Normaliser> normaliser_;
  std::vector<std::unique_ptr<Memory>> outputs_;  // one per lease; empty for uint8
  std::vector<std::unique_ptr<Event>> ready_;     // one per lease: its bytes are there
  std::unique_ptr<Loader> loader_;
  std::vector<std::atomic<Step>> lent_;  // per lease: the step that its memory was last lent for
  std::atomic<bool> closed_{false};

  std::mutex copy_mutex_;        // taken before stream_mutex_
  std::mutex stream_mutex_;      // taken before returned_mutex_
  std::atomic<Step> next_step_;  // written under stream_mutex_

  mutable std::mutex returned_mutex_;
  std::vector<Returned> returned_;  // guarded by returned_mutex_
  std::set<Step> held_;             // guarded by returned_mutex_

  std::mutex borrowed_mutex_;
  std::map<uintptr_t, std::unique_ptr<Stream>> borrowed_;  // guarded by borrowed_mutex_, and use
};

}  // namespace stoker::python
