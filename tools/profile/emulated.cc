#include "tools/profile/emulated.h"

#include <fmt/format.h>
#include <time.h>

#include <string>
#include <thread>

#include "pipeline/measure_hooks.h"
#include "staging/allowed_cores.h"
#include "staging/error_text.h"
#include "staging/stage_stats.h"
#include "staging/threads.h"
#include "tools/profile/session.h"

namespace stoker {
namespace {

FeedShape emulated_shape(const LoaderOptions& options, const std::vector<Device*>& devices) {
  FeedShape shape;
  shape.rows = options.batch_size;
  shape.devices = static_cast<int>(devices.size());
  shape.workers = options.feed.workers;
  shape.io_threads = options.feed.workers > 0 ? options.feed.io_threads : 0;
  shape.ring_depth = options.ring_depth;
  shape.zero_copy = devices[0]->host_accessible();
  shape.slots = options.slots >= 0 ? options.slots : shape.zero_copy ? 0 : 2;
  shape.cores = allowed_cores();
  shape.machine_cores = machine_cores();
  return shape;
}

constexpr int64_t kSecondNs = 1'000'000'000;

void sleep_until(int64_t steady_ns) {
  const timespec until{steady_ns / kSecondNs, steady_ns % kSecondNs};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

// Emulated devices, which take batches at a given rate and do nothing with them. A feed is profiled
// against them if its accelerator is not available. A batch takes rows / rate seconds of sleep, so
// the feed has all the cores.
struct ConsumerOptions {
  double samples_per_second = 0;  // of each device; above 0
  int rows = 0;                   // of a batch
  Tracer* tracer = nullptr;
  const std::atomic<bool>* replay = nullptr;  // while true, the last batch is taken again
};

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

// Takes the batches of all devices, with a thread for each, until the feed ends or is stopped.
// Blocks. Returns the number of steps of device 0. Throws what Loader::next throws.
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

}  // namespace

Profile profile_emulated(const Source& source, const AugmentSpec& augment,
                         const LoaderOptions& wanted, const FeedRun& how, ProfiledRun& run) {
  std::vector<std::unique_ptr<Device>> own;
  std::vector<Device*> devices;
  if (how.device) devices.push_back(how.device);
  for (int i = 0; i < how.devices && !how.device; ++i) {
    devices.push_back(own.emplace_back(make_host_device(i)).get());
  }
  Tracer tracer;
  LoaderOptions options = wanted;
  options.tracer = &tracer;
  MeasureHooks measure{.spare_workers = ProfileSession::spare_workers(options.feed.workers)};
  options.measure = &measure;
  ProfileSession session({.seconds = how.seconds,
                          .workers = options.feed.workers,
                          .warm_up_steps = options.ring_depth + 5},
                         tracer);
  Profile profile;
  {
    Loader loader(source, augment, devices, options);
    session.start({.limit_workers = measure.limit_workers, .stop = [&] { loader.stop(); }});
    try {
      consume(loader, devices,
              {.samples_per_second = how.demand,
               .rows = options.batch_size,
               .tracer = &tracer,
               .replay = &session.replay()});
    } catch (...) {
      session.finish();
      throw;
    }
    run = session.finish();
    profile =
        make_profile(run, emulated_shape(wanted, devices), how.storage,
                     source.storage().store_stats(), [&](SampleId id) { return source.name(id); });
    profile.planned_bytes = loader.memory_plan().total_bytes();
    profile.scratch_bytes = loader.memory_plan().scratch_bytes;
  }
  profile.device = fmt::format("{} emulated, of {:g} images/s{}", devices.size(), how.demand,
                               devices.size() > 1 ? " each" : "");
  return profile;
}

}  // namespace stoker
