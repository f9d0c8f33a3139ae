#include "bench/suite/slice_bench.h"

#include <fmt/format.h>

#include <memory>
#include <stdexcept>

#include "staging/device_list.h"

namespace stoker {
namespace {

constexpr int kWarmupRuns = 5;

class Slicing {
 public:
  Slicing(Device& device, size_t batch_bytes, int slices)
      : slices_(slices),
        slice_bytes_(batch_bytes / slices),
        slab_(device.allocate(batch_bytes, MemoryKind::pinned)),
        whole_(device.allocate(batch_bytes, MemoryKind::device)),
        begin_(device.make_event(true)),
        end_(device.make_event(true)),
        staged_(device.make_event()) {
    for (int i = 0; i < slices; ++i) {
      replicas_.push_back({device.allocate(slice_bytes_, MemoryKind::device), device.make_stream(),
                           device.make_event()});
    }
  }

  double milliseconds(bool on_device) {
    Stream& first = *replicas_.front().stream;
    first.record(*begin_);
    if (on_device) {
      first.copy(whole_->data(), slab_->data(), slice_bytes_ * slices_, CopyKind::host_to_device);
    }
    first.record(*staged_);
    const std::byte* source = on_device ? whole_->data() : slab_->data();
    for (Replica& replica : replicas_) {
      replica.stream->wait(*staged_);
      replica.stream->copy(replica.memory->data(), source, slice_bytes_,
                           on_device ? CopyKind::device_to_device : CopyKind::host_to_device);
      replica.stream->record(*replica.done);
      source += slice_bytes_;
    }
    for (Replica& replica : replicas_) first.wait(*replica.done);
    first.record(*end_);
    end_->synchronize();
    return end_->elapsed_ms(*begin_);
  }

  size_t bytes() const { return slice_bytes_ * slices_; }

 private:
  struct Replica {
    std::unique_ptr<Memory> memory;
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Event> done;
  };
  const int slices_;
  const size_t slice_bytes_;
  std::unique_ptr<Memory> slab_, whole_;
  std::unique_ptr<Event> begin_, end_, staged_;
  std::vector<Replica> replicas_;
};

void check(const SliceOptions& options) {
  if (options.replicas >= 1 && options.rows >= options.replicas && options.size >= 1 &&
      options.repeats >= 1) {
    return;
  }
  throw std::invalid_argument(fmt::format(
      "bench slice: {} samples of {} px for {} replicas, {} repeats: at least one of each",
      options.rows, options.size, options.replicas, options.repeats));
}

}  // namespace

Report bench_slice(const SliceOptions& options) {
  check(options);
  const auto device = make_device(options.device);
  Slicing slicing(*device, size_t{3} * options.size * options.size * options.rows,
                  options.replicas);
  std::vector<double> host, on_device;
  for (int run = 0; run < kWarmupRuns + options.repeats; ++run) {
    const double host_ms = slicing.milliseconds(false), device_ms = slicing.milliseconds(true);
    if (run < kWarmupRuns) continue;
    host.push_back(host_ms);
    on_device.push_back(device_ms);
  }
  Report report;
  report.bench = "slice";
  report.settings = {{"device", options.device},
                     {"replicas", options.replicas},
                     {"batch", options.rows},
                     {"size", options.size},
                     {"repeats", options.repeats}};
  const Summary host_ms = report.add({"sliced on the host", "ms", Better::lower, host});
  const Summary device_ms = report.add({"sliced on the device", "ms", Better::lower, on_device});
  const size_t moved = slicing.bytes();
  report.results = {{"device", device->name()},
                    {"batch", options.rows},
                    {"size", options.size},
                    {"replicas", options.replicas},
                    {"on_host_ms", host_ms.median},
                    {"on_host_bytes_over_bus", moved},
                    {"on_host_bytes_on_device", 0},
                    {"on_device_ms", device_ms.median},
                    {"on_device_bytes_over_bus", moved},
                    {"on_device_bytes_on_device", moved}};
  const std::string megabytes = significant(1e-6 * static_cast<double>(moved));
  report.tables = {{fmt::format("{} samples of {} px for {} replicas on {}", options.rows,
                                options.size, options.replicas, device->name()),
                    {"sliced on", "ms", "MB over the bus", "MB moved on the device"},
                    {{"the host", with_interval(host_ms), megabytes, "0"},
                     {"the device", with_interval(device_ms), megabytes, megabytes}}}};
  Plot plot{"slice", "A batch for several replicas", "sliced on", "ms", {}, {}};
  add_bar(plot, "the host", "ms", plot_point(host_ms));
  add_bar(plot, "the device", "ms", plot_point(device_ms));
  report.plots = {std::move(plot)};
  return report;
}

}  // namespace stoker
