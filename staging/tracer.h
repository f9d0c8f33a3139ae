// What happened when: spans of work and of waiting, written by the threads that did them, each with
// the batch (and the sample) it was for. For profiling; who holds no Tracer pays a test of a
// pointer.
//
// Every thread writes into a ring of its own, made at its first span: no locks, no sharing, one
// reader. A full ring drops the span and counts it. A span costs two looks at the clock, and one
// more at the thread's CPU time where that is asked for.
//
// Owner: the user; outlives everything that was given it. Threads: add and name_thread from any;
// drain from one at a time. Errors: only a thread's first span allocates, and may throw
// std::bad_alloc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "staging/batch_layout.h"

namespace stoker {

enum class SpanKind : uint8_t {
  read,         // a sample's bytes, out of the Source
  cached_read,  // the same by a worker, because they lay in memory
  unit_wait,    // an I/O thread had files to read, but no free buffer: the workers are behind
  decode,       // a file's bytes into cropped and resized pixels
  pixels,       // what is done to the pixels after that; all of it for a chunk of raw samples
  room_wait,    // there was no free slab: the ring was full
  commit,       // a slab's last row was filled (no length)
  slab_wait,    // the copying thread had no filled slab to take
  slot_wait,    // the copying thread had no free slot
  copy,         // a batch on the copy stream, as the stream saw it
  input_wait,   // the consumer in Loader::next()
  copy_wait,    // the consumer, until the pixels that it was handed were there
  lease,        // the consumer held the batch
  launch,       // forward and backward, given to a device that works them off later
  compute,      // forward and backward: of the call, or of the device that was given them
  reduce,       // gradients over replicas, waiting for them included
  update,       // of the weights
  step,         // a consumer's whole step
  evaluate,     // after an epoch
  checkpoint,   // written
};
inline constexpr int kSpanKinds = static_cast<int>(SpanKind::checkpoint) + 1;
const char* to_string(SpanKind kind);

struct Span {
  SpanKind kind = SpanKind::read;
  int32_t device = 0;    // index into the Loader's devices
  Step step = -1;        // -1: of no batch
  SampleId sample = -1;  // -1: of no single one
  int64_t begin_ns = 0;  // steady clock
  int64_t end_ns = 0;    // the same
  int64_t cpu_ns = -1;   // the thread's CPU time in it; -1: not measured
  int64_t items = 1;     // rows, samples or batches
  int64_t bytes = 0;     // of a read or a copy
};

struct TraceTrack {
  std::string name;    // "worker 2"
  int64_t thread = 0;  // Linux's number of the thread, while it lives
};

struct TrackedSpan : Span {
  int32_t track = 0;  // index into tracks()
};

int64_t thread_cpu_ns();  // of the calling thread

class Tracer {
 public:
  static constexpr size_t kSpansPerThread = size_t{1} << 14;  // 64 bytes each

  explicit Tracer(size_t spans_per_thread = kSpansPerThread);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  void name_thread(const std::string& name);  // of the calling thread
  void add(const Span& span);
  // Appends what was added since the last call, thread by thread, each in order of its ends.
  void drain(std::vector<TrackedSpan>& spans);
  std::vector<TraceTrack> tracks() const;  // of every thread that has added or was named
  int64_t dropped() const;                 // spans that found no room

 private:
  struct Track;
  struct Impl;
  Track& my_track();
  std::unique_ptr<Impl> impl_;
};

// A span from here to the end of the block; nothing where `tracer` is null.
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
