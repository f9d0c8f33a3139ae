// The spans of a step's forward and backward pass. For an engine that blocks, a span is the time of
// the call. For one that queues on a stream there are two: the time to queue (launch), and what the
// pass took on the device (compute), between two marks in the stream's own order. Owner: a
// replica's thread.
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
