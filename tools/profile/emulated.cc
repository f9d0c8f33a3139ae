#include "tools/profile/emulated.h"

#include <fmt/format.h>

#include "pipeline/measure_hooks.h"
#include "staging/allowed_cores.h"
#include "tools/profile/emulated_consumer.h"
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
  }
  profile.device = fmt::format("{} emulated, of {:g} images/s{}", devices.size(), how.demand,
                               devices.size() > 1 ? " each" : "");
  return profile;
}

}  // namespace stoker
