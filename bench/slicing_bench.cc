// A batch for N replicas on one device, cut on the host or on the device: bytes and milliseconds.
//
// On the host: every replica's rows are copied to it from pinned memory on its own stream, as each
// replica's ring and stager do. On the device: the whole batch crosses the bus in one copy and is
// then cut by copies on the device. With several devices the second way also needs their links.
// Prints one JSON object.
//
//   slicing_bench --device cuda:0 --replicas 4 --rows 1024 --size 224
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "staging/device_list.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kWarmupSteps = 5;

struct Arguments {
  std::string device = "cpu:0";
  int replicas = 4;
  int rows = 1024;
  int size = 224;
  int steps = 30;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

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

Json measure(Device& device, const Arguments& arguments) {
  const size_t bytes = size_t{3} * arguments.size * arguments.size * arguments.rows;
  Slicing slicing(device, bytes, arguments.replicas);
  std::vector<double> host_ms, device_ms;
  for (int step = 0; step < kWarmupSteps + arguments.steps; ++step) {
    const double on_host = slicing.milliseconds(false), on_device = slicing.milliseconds(true);
    if (step < kWarmupSteps) continue;
    host_ms.push_back(on_host);
    device_ms.push_back(on_device);
  }
  const size_t moved = slicing.bytes();
  return {{"device", device.name()},
          {"rows", arguments.rows},
          {"size", arguments.size},
          {"replicas", arguments.replicas},
          {"on_host_ms", median(host_ms)},
          {"on_host_bytes_over_bus", moved},
          {"on_host_bytes_on_device", 0},
          {"on_device_ms", median(device_ms)},
          {"on_device_bytes_over_bus", moved},
          {"on_device_bytes_on_device", moved}};
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Measures slicing a batch on the host and on the device; prints JSON."};
  app.add_option("--device", arguments.device, "cpu:N or cuda:N")->capture_default_str();
  app.add_option("--replicas", arguments.replicas)->check(CLI::Range(1, 64));
  app.add_option("--rows", arguments.rows, "of the batch")->check(CLI::Range(1, 1 << 20));
  app.add_option("--size", arguments.size, "pixels per side")->check(CLI::Range(1, 4096));
  app.add_option("--steps", arguments.steps, "timed, after a few others")
      ->check(CLI::Range(1, 100000));
  CLI11_PARSE(app, argc, argv);
  const auto device = make_device(arguments.device);
  std::printf("%s\n", measure(*device, arguments).dump().c_str());
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  try {
    return stoker::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "slicing_bench: %s\n", error.what());
    return 1;
  }
}
