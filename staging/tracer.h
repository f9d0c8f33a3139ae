// Records when threads worked and when they waited, for profiling. A span belongs to a batch, and
// may belong to a sample. Code without a Tracer pays for the test of a pointer.
//
// Every thread writes to its own ring, which is made at its first span: there are no locks, and
// there is one reader. If a ring is full, the span is dropped and counted. A span reads the clock
// twice, and the thread's CPU time twice if that is wanted.
//
// Owner: the user; it outlives everything that it was given to. Threads: add() and name_thread()
// from any; drain() from one at a time. Errors: only a thread's first span, and its name, allocate
// and may throw std::bad_alloc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "staging/batch_layout.h"

namespace stoker {

enum class SpanKind : uint8_t {
  read,         // an I/O thread or a worker read a sample's bytes from the Source
  cached_read,  // a worker read them from the page cache
  unit_wait,    // an I/O thread waited for a free buffer: the workers are behind
  decode,       // a worker decoded, cropped and resized a file
  pixels,       // the operations after that; all of the work for a chunk of raw samples
  room_wait,    // the feed waited for a free slab: the ring was full
  commit,       // a slab's last row was filled (no length)
  slab_wait,    // the copying thread waited for a filled slab
  slot_wait,    // the copying thread waited for a free slot
  copy,         // a batch was copied, measured on the copy stream
  input_wait,   // the consumer waited in Loader::next()
  copy_wait,    // the consumer waited until the batch's pixels had been copied
  lease,        // the consumer held the batch
  launch,       // forward and backward were queued on a device
  compute,      // forward and backward ran: in the call, or on the device
  reduce,       // gradients were summed over replicas, including the wait for the others
  update,       // the weights were updated
  step,         // a consumer's whole step
  evaluate,     // the evaluation after an epoch
  checkpoint,   // a checkpoint was written
};
inline constexpr int kSpanKinds = static_cast<int>(SpanKind::checkpoint) + 1;
const char* to_string(SpanKind kind);

struct Span {
  SpanKind kind = SpanKind::read;
  int32_t device = 0;    // index into the Loader's devices
  Step step = -1;        // -1: belongs to no batch
  SampleId sample = -1;  // -1: belongs to no single sample
  int64_t begin_ns = 0;  // steady clock
  int64_t end_ns = 0;    // steady clock
  int64_t cpu_ns = -1;   // CPU time of the thread; -1: not measured
  int64_t items = 1;     // samples or batches
  int64_t bytes = 0;     // that were read or copied
};

struct TraceTrack {
  std::string name;    // "worker 2"
  int64_t thread = 0;  // Linux's thread id; another thread may get it later
};

struct TrackedSpan : Span {
  int32_t track = 0;  // index into tracks()
};

// Returns the CPU time of the calling thread.
int64_t thread_cpu_ns();

class Tracer {
 public:
  static constexpr size_t kSpansPerThread = size_t{1} << 14;  // 64 bytes each

  explicit Tracer(size_t spans_per_thread = kSpansPerThread);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  void name_thread(const std::string& name);  // names the calling thread
  void add(const Span& span);
  // Appends the spans since the last call, thread by thread; each thread's in the order of their
  // ends.
  void drain(std::vector<TrackedSpan>& spans);
  std::vector<TraceTrack> tracks() const;  // one per thread that has added a span or has a name
  int64_t dropped() const;                 // number of spans that a full ring dropped

 private:
  struct Track;
  struct Impl;
  Track& my_track();
  std::unique_ptr<Impl> impl_;
};

// Records a span from here to the end of the block; does nothing if `tracer` is null.
class SpanTimer {
 public:
  enum class Cpu : bool { skip, measure };
  SpanTimer(Tracer* tracer, SpanKind kind, Step step, int device = 0, Cpu cpu = Cpu::skip,
            int64_t items = 1);
  ~SpanTimer();
  SpanTimer(const SpanTimer&) = delete;
  SpanTimer& operator=(const SpanTimer&) = delete;

 private:
  Tracer* const tracer_;
  Span span_;
  int64_t cpu_begin_ns_ = -1;
};

}  // namespace stoker
