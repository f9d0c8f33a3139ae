// A Loader for Python: its batches are kept alive by whatever uses them, on any thread, for any
// time. Feed owns the stream on which its batches are leased, the Loader with all its threads, and
// on a GPU the memory of normalised images. A Lease is one batch of the feed, which may end before
// it: it is for one step, and what was released cannot be reached through it.
//
// On a host, a batch that is held when the ring needs its slab keeps the slab, and the ring gets
// other memory. On a GPU the number of slots is bounded: there it is an error before the call,
// because the Stager would abort. Leases are returned in the order of the device's work.
//
// Threads: any; each batch goes to one of those that call next(). Nothing here calls Python. Calls
// that wait for a batch, or for close() on another thread, are those with a comment on blocking,
// and state(), check_state(), remote_rows(), stats() and memory_plan(): the caller releases
// Python's lock, which the feed's threads may need before they end. The last owner's end of a feed,
// or of a lease on a GPU after its feed, blocks, and releases the lock itself if it holds it. After
// fork() the child has none of the threads: every call there throws, and destructors leave
// everything as it is. Errors: std::invalid_argument, std::runtime_error; FeedError for errors of
// next().
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipeline/exchange/remote_rows.h"
#include "pipeline/loader.h"
#include "pipeline/row/device_edits.h"
#include "python/core/array.h"
#include "python/core/batch_draws.h"
#include "staging/device.h"
#include "staging/mutex.h"
#include "staging/normalise.h"

namespace stoker::python {

struct FeedError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The type and layout of `images`.
struct ImageFormat {
  std::optional<PixelType> type;        // none: uint8 as decoded
  PixelOrder order = PixelOrder::nhwc;  // of the bytes in memory
  bool channels_second = false;         // shape (rows, 3, height, width) whatever the order
  std::array<float, 3> mean{};          // of pixels / 255
  std::array<float, 3> stddev{1, 1, 1};
};

struct NamedArray {
  std::string name;
  Array array;
};

// A target that varies, on the host.
struct VaryingTarget {
  TargetColumn column;
  Array values;                    // of all rows, one behind the other
  std::vector<int32_t> offsets{};  // rows + 1: where each row's begin
  bool has_all_texts = false;      // a row has several texts, each ended by a NUL
};

// One batch. On a host only the images and views are lent; the rest are copies.
struct Batch {
  BatchHeader header;
  Array images;   // (rows, height, width, 3) or (rows, 3, height, width)
  Array labels;   // (rows) int32
  Array weights;  // (rows) float32
  Array ids;      // (rows) int64, on the host
  // (rows, ...), one per column that is no view and does not vary; pictures besides the samples'
  // own are as images.
  std::vector<NamedArray> targets{};
  std::vector<VaryingTarget> varying{};
  std::vector<Array> views{};  // after the first, which is `images`; as images
  std::shared_ptr<const BatchDraws> draws{};
};

struct Loan;

class Feed : public std::enable_shared_from_this<Feed> {
 public:
  struct Options {
    std::string device = "cpu:0";
    ImageFormat format;
    bool copy = false;  // every batch keeps its memory permanently; hosts only
    // Fill the images' memory with 0xDB when a lease ends, to find code that still reads it.
    bool poison = false;
  };
  static std::shared_ptr<Feed> make(std::shared_ptr<const Source> source,
                                    const AugmentSpec& augment, LoaderOptions loader,
                                    const Options& options);
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Blocks for at most `ms` milliseconds. Returns whether next(end) would not wait for the feed
  // now. Throws std::runtime_error if a held batch uses the GPU slot that the next one needs.
  bool wait_ready(Step end, int ms);
  // Returns the next batch, if it is before step `end`. Returns nothing if there is none before
  // `end` or the feed was closed; or, with `again`, if another thread took the one that was ready.
  // Throws std::bad_alloc if a held batch keeps its memory and there is no other; then the call may
  // be repeated.
  std::optional<Batch> next(Step end, bool& again);
  // Ends the feed, its threads and all its memory except that of held batches, which stay valid.
  // Blocks.
  void close() noexcept;

  void check_process() const;  // throws in a forked child
  Step next_step() const { return next_step_; }
  Step end_step() const { return end_step_; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  int max_leases() const { return max_leases_; }
  int held() const;  // number of leases
  bool closed() const { return closed_; }
  const Source& source() const { return *source_; }
  DeviceEdits edits() const { return edits_; }  // what the workers leave to the device
  // These throw std::runtime_error after close().
  std::shared_ptr<RemoteRows> remote_rows() const;
  LoaderState state() const;
  // Throws what Loader::resume_step throws.
  void check_state(const LoaderState& state, uint64_t seed) const;
  LoaderStats stats() const;
  MemoryPlan memory_plan() const;  // with the memory of normalised images as slot_bytes

 private:
  struct LeaseTable;
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
  std::vector<VaryingTarget> varying_of(const DeviceBatch& batch,
                                        const std::vector<TargetColumn>& columns) const;
  Array as_images(const void* data, Size size, int64_t rows) const;
  void make_normalisers(int rows);
  const void* normalised(size_t view, const void* pixels, const DeviceBatch& batch)
      REQUIRES(stream_mutex_) REQUIRES_SHARED(running_mutex_);
  Loader& running() const REQUIRES_SHARED(running_mutex_);
  bool on_host() const { return where_ == DlDevice{}; }
  size_t slot_of(Step step) const { return static_cast<size_t>(step) % ready_.size(); }

  // Constant after construction.
  const pid_t process_;
  std::atomic<bool> reads_end_{false};  // once the feed has stopped
  const std::shared_ptr<const Source> source_;
  const Options options_;
  DlDevice where_;
  const std::shared_ptr<Device> device_;
  std::shared_ptr<LeaseTable> table_;
  Step end_step_ = 0;
  int64_t steps_per_epoch_ = 0;
  int max_leases_ = 0;
  size_t images_bytes_ = 0;
  const std::shared_ptr<const AugmentSpec> augment_;
  std::vector<AugmentSpec> specs_{};  // of each shape of batches
  const uint64_t seed_;
  const DecodeOptions decode_;
  const TextChoice texts_;
  DeviceEdits edits_;

  std::atomic<bool> closed_{false};
  // Held in shared mode by users of what follows, and exclusively by close(). Taken before all
  // others.
  mutable SharedMutex running_mutex_;
  Mutex stream_mutex_ ACQUIRED_AFTER(running_mutex_);  // taken before LeaseTable::mutex
  std::atomic<Step> next_step_;                        // written under stream_mutex_
  // As large as the images; null without Options::poison.
  std::unique_ptr<Memory> poison_ GUARDED_BY(running_mutex_);
  std::unique_ptr<Stream> compute_ GUARDED_BY(stream_mutex_);
  // On a GPU, if images are not uint8: one for each shape of each view, or none.
  std::vector<Normaliser> normalisers_;
  std::vector<size_t> output_offsets_;  // of the views in an output; behind them its size
  // Output of normalisers_, one per lease: the views one after the other.
  std::vector<std::shared_ptr<Memory>> outputs_ GUARDED_BY(running_mutex_);
  std::vector<std::shared_ptr<Event>> ready_;  // one per lease: its bytes have arrived
  std::unique_ptr<Loader> loader_ GUARDED_BY(running_mutex_);  // null after close()
};

}  // namespace stoker::python
