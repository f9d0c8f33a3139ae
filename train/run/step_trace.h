// Records the spans of a step's forward and backward pass. For an engine that blocks, there is one
// span: the time of the call. For an engine that queues on a stream there are two: the time to
// queue (launch), and the time of the pass on the device (compute), measured by two callbacks on
// the stream. Owner: a replica's thread.
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
      stream_->synchronize();  // callbacks may still be queued
    } catch (...) {
      // A failed device runs nothing more; its error was already reported.
    }
  }
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  // Runs `work`, the pass of `step`.
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
  int64_t begin_ns_ = 0;  // used by the stream's callbacks
};

}  // namespace stoker
