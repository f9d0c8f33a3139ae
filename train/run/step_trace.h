// A step's forward and backward pass, for a Tracer: where the engine blocks, the time of the call;
// where it queues on a stream, the time to queue it (launch) and, from marks that the stream's own
// order puts around it, what it took on the device (compute). Owner: a replica's thread.
#pragma once

#include "staging/stage_stats.h"
#include "staging/tracer.h"
#include "train/engine/engine.h"

namespace stoker {

class StepTrace {
 public:
  StepTrace(Tracer* tracer, Engine& engine, int rank)
      : tracer_(tracer), stream_(engine.stream()), rank_(rank) {}
  ~StepTrace() {
    if (!tracer_ || !stream_) return;
    try {
      stream_->synchronize();  // it still has calls of ours, perhaps
    } catch (...) {
      // A failed device works nothing off any more; its error was told where it was met.
    }
  }
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  // Runs `work`, which is the pass of `step`.
  template <typename Work>
  void pass(int64_t step, Work work) {
    const bool queues = tracer_ && stream_;
    if (queues) stream_->call([this] { begin_ns_ = steady_now_ns(); });
    {
      const SpanTimer timer(tracer_, queues ? SpanKind::launch : SpanKind::compute, step, rank_,
                            SpanTimer::Cpu::measure);
      work();
    }
    if (queues) stream_->call([this, step] { end(step); });
  }

 private:
  void end(int64_t step) {
    Span span;
    span.kind = SpanKind::compute;
    span.step = step;
    span.device = rank_;
    span.begin_ns = begin_ns_;
    span.end_ns = steady_now_ns();
    tracer_->add(span);
  }

  Tracer* const tracer_;
  Stream* const stream_;
  const int rank_;
  int64_t begin_ns_ = 0;  // the stream's
};

}  // namespace stoker
