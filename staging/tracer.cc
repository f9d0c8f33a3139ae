#include "staging/tracer.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <map>

#include "staging/mutex.h"
#include "staging/stage_stats.h"

namespace stoker {
namespace {

std::atomic<uint64_t> next_tracer{1};

}  // namespace

const char* to_string(SpanKind kind) {
  static constexpr const char* kNames[kSpanKinds] = {
      "read",      "cached read", "buffer wait", "decode",     "pixels",    "room wait", "commit",
      "slab wait", "slot wait",   "copy",        "input wait", "copy wait", "lease",     "launch",
      "compute",   "reduce",      "update",      "step",       "evaluate",  "checkpoint"};
  return kNames[static_cast<int>(kind)];
}

int64_t thread_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

// A ring with one writer and one reader. Positions only grow; the slot is position % size.
struct Tracer::Track {
  explicit Track(size_t capacity, int64_t thread_number) : spans(capacity), thread(thread_number) {}

  void add(const Span& span) {
    const uint64_t at = written.load(std::memory_order_relaxed);
    if (at - read.load(std::memory_order_acquire) == spans.size()) {
      dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    spans[at % spans.size()] = span;
    written.store(at + 1, std::memory_order_release);
  }
  void drain(int32_t number, std::vector<TrackedSpan>& to) {
    const uint64_t end = written.load(std::memory_order_acquire);
    uint64_t at = read.load(std::memory_order_relaxed);
    for (; at < end; ++at) to.push_back({spans[at % spans.size()], number});
    read.store(at, std::memory_order_release);
  }

  std::vector<Span> spans;
  const int64_t thread;
  std::atomic<uint64_t> written{0};  // changed by the writer
  std::atomic<uint64_t> read{0};     // changed by the reader
  std::atomic<int64_t> dropped{0};
};

struct Tracer::Impl {
  const uint64_t number = next_tracer.fetch_add(1);  // unlike its address, no later Tracer has it
  const size_t capacity;
  mutable Mutex mutex;
  std::vector<std::unique_ptr<Track>> tracks GUARDED_BY(mutex);  // a Track never moves
  std::map<const Track*, std::string> names GUARDED_BY(mutex);   // only of named tracks

  explicit Impl(size_t spans_per_thread) : capacity(spans_per_thread) {}
};

Tracer::Tracer(size_t spans_per_thread) : impl_(std::make_unique<Impl>(spans_per_thread)) {}
Tracer::~Tracer() = default;

Tracer::Track& Tracer::my_track() {
  thread_local struct {
    uint64_t tracer = 0;
    Track* track = nullptr;
  } mine;
  if (mine.tracer == impl_->number) return *mine.track;
  const auto thread = static_cast<int64_t>(syscall(SYS_gettid));
  const MutexLock lock(impl_->mutex);
  mine.track = nullptr;
  // A thread that writes to several Tracers in turn has its track already.
  for (const auto& track : impl_->tracks) {
    if (track->thread == thread) mine.track = track.get();
  }
  if (!mine.track) {
    mine.track = impl_->tracks.emplace_back(std::make_unique<Track>(impl_->capacity, thread)).get();
  }
  mine.tracer = impl_->number;
  return *mine.track;
}

void Tracer::name_thread(const std::string& name) {
  Track& track = my_track();
  const MutexLock lock(impl_->mutex);
  impl_->names[&track] = name;
}

void Tracer::add(const Span& span) { my_track().add(span); }

void Tracer::drain(std::vector<TrackedSpan>& spans) {
  std::vector<Track*> tracks;
  {
    const MutexLock lock(impl_->mutex);
    for (const auto& track : impl_->tracks) tracks.push_back(track.get());
  }
  for (size_t i = 0; i < tracks.size(); ++i) tracks[i]->drain(static_cast<int32_t>(i), spans);
}

std::vector<TraceTrack> Tracer::tracks() const {
  const MutexLock lock(impl_->mutex);
  std::vector<TraceTrack> result;
  for (const auto& track : impl_->tracks) {
    const auto named = impl_->names.find(track.get());
    result.push_back(
        {named != impl_->names.end() ? named->second : "thread " + std::to_string(track->thread),
         track->thread});
  }
  return result;
}

int64_t Tracer::dropped() const {
  const MutexLock lock(impl_->mutex);
  int64_t sum = 0;
  for (const auto& track : impl_->tracks) sum += track->dropped.load(std::memory_order_relaxed);
  return sum;
}

SpanTimer::SpanTimer(Tracer* tracer, SpanKind kind, Step step, int device, Cpu cpu, int64_t items)
    : tracer_(tracer) {
  if (!tracer_) return;
  span_.kind = kind;
  span_.step = step;
  span_.device = device;
  span_.items = items;
  span_.begin_ns = steady_now_ns();
  if (cpu == Cpu::measure) cpu_begin_ns_ = thread_cpu_ns();
}

SpanTimer::~SpanTimer() {
  if (!tracer_) return;
  if (cpu_begin_ns_ >= 0) span_.cpu_ns = thread_cpu_ns() - cpu_begin_ns_;
  span_.end_ns = steady_now_ns();
  tracer_->add(span_);
}

}  // namespace stoker
