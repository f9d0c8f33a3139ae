#include "tools/profile/emulated_consumer.h"

#include <time.h>

#include <string>
#include <thread>

#include "staging/error_text.h"
#include "staging/stage_stats.h"
#include "staging/threads.h"

namespace stoker {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

void sleep_until(int64_t steady_ns) {
  const timespec until{steady_ns / kSecondNs, steady_ns % kSecondNs};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

int64_t serve(Loader& loader, int device, Stream& stream, const ConsumerOptions& options) {
  Tracer* const tracer = options.tracer;
  if (tracer) tracer->name_thread("replica " + std::to_string(device));
  const auto compute_ns = static_cast<int64_t>(options.rows / options.samples_per_second * 1e9);
  DeviceBatch batch;
  for (int64_t step = 0;; ++step) {
    const SpanTimer whole(tracer, SpanKind::step, step, device);
    {
      const SpanTimer timer(tracer, SpanKind::input_wait, step, device);
      if (!batch) batch = loader.next(device, stream);
    }
    if (!batch) return step;
    {
      const SpanTimer timer(tracer, SpanKind::copy_wait, step, device);
      batch.synchronize();
    }
    {
      const SpanTimer timer(tracer, SpanKind::compute, step, device);
      sleep_until(steady_now_ns() + compute_ns);
    }
    if (!options.replay || !options.replay->load()) batch = {};
  }
}

}  // namespace

int64_t consume(Loader& loader, const std::vector<Device*>& devices,
                const ConsumerOptions& options) {
  FirstError error;
  int64_t steps = 0;
  {
    std::vector<std::unique_ptr<Stream>> streams;
    for (Device* device : devices) streams.push_back(device->make_stream());
    run_threads("emulated devices", std::ssize(devices), [&](int64_t i) {
      try {
        const int64_t made =
            serve(loader, static_cast<int>(i), *streams[static_cast<size_t>(i)], options);
        if (i == 0) steps = made;
      } catch (...) {
        error.keep_current();
        loader.stop();
      }
    });
  }
  error.rethrow();
  return steps;
}

}  // namespace stoker
