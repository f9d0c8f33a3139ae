#include "bench/suite/slice_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "bench/suite/schedule_simulation.h"
#include "bench/suite/throttled_device.h"
#include "staging/device_list.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSliceWarmupRuns = 5;

// Bytes that one run moves to a device, or on it.
struct DeviceBytes {
  size_t from_host = 0, from_device = 0, inside = 0;
};

class Slicing {
 public:
  // The devices outlive it. There are `replicas` on each, with parts of `part_bytes`.
  Slicing(const std::vector<std::unique_ptr<Device>>& devices, int replicas, size_t part_bytes)
      : replicas_(replicas),
        part_bytes_(part_bytes),
        whole_bytes_(part_bytes * replicas * devices.size()),
        slab_(devices.front()->allocate(whole_bytes_, MemoryKind::pinned)),
        begin_(devices.front()->make_event(true)),
        end_(devices.front()->make_event(true)) {
    for (const auto& device : devices) {
      wholes_.push_back(device->allocate(whole_bytes_, MemoryKind::device));
      staged_.push_back(device->make_event());
      for (int i = 0; i < replicas; ++i) {
        parts_.push_back({device->allocate(part_bytes, MemoryKind::device), device->make_stream(),
                          device->make_event()});
      }
    }
  }

  // Returns the milliseconds until every replica has its part.
  double run(CutOn cut) {
    bytes_.assign(wholes_.size(), {});
    Stream& first = *parts_.front().stream;
    first.record(*begin_);
    for (size_t d = 0; d < wholes_.size(); ++d) stage(cut, d);
    for (size_t i = 0; i < parts_.size(); ++i) take(cut, i);
    for (Part& part : parts_) first.wait(*part.done);
    first.record(*end_);
    end_->synchronize();
    return end_->elapsed_ms(*begin_);
  }

  // The last run's, by device.
  const std::vector<DeviceBytes>& bytes() const { return bytes_; }
  size_t whole_bytes() const { return whole_bytes_; }

 private:
  struct Part {
    std::unique_ptr<Memory> memory;
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Event> done;
  };

  // Copies the whole batch to a device, if it gets it.
  void stage(CutOn cut, size_t device) {
    Stream& stream = *parts_[device * replicas_].stream;
    if (device > 0) stream.wait(*begin_);
    if (cut == CutOn::each_device || (cut == CutOn::first_device && device == 0)) {
      stream.copy(wholes_[device]->data(), slab_->data(), whole_bytes_, CopyKind::host_to_device);
      bytes_[device].from_host += whole_bytes_;
    }
    stream.record(*staged_[device]);
  }

  void take(CutOn cut, size_t index) {
    const size_t device = index / replicas_;
    const size_t from = cut == CutOn::first_device ? 0 : device;
    Part& part = parts_[index];
    part.stream->wait(*staged_[from]);
    const std::byte* whole = cut == CutOn::host ? slab_->data() : wholes_[from]->data();
    part.stream->copy(part.memory->data(), whole + index * part_bytes_, part_bytes_,
                      cut == CutOn::host ? CopyKind::host_to_device : CopyKind::device_to_device);
    part.stream->record(*part.done);
    DeviceBytes& bytes = bytes_[device];
    (cut == CutOn::host ? bytes.from_host
     : from == device   ? bytes.inside
                        : bytes.from_device) += part_bytes_;
  }

  const size_t replicas_;  // on each device
  const size_t part_bytes_, whole_bytes_;
  std::unique_ptr<Memory> slab_;
  std::unique_ptr<Event> begin_, end_;
  std::vector<std::unique_ptr<Memory>> wholes_;  // by device, as staged_
  std::vector<std::unique_ptr<Event>> staged_;
  std::vector<DeviceBytes> bytes_;
  std::vector<Part> parts_;  // destroyed first: streams use all of the above
};

// The measurements of one cut.
struct CutResult {
  CutOn cut;
  std::vector<double> ms;
  std::vector<DeviceBytes> bytes;
  std::vector<LinkLoad> links;  // of a run; empty without a machine
};

void check_slices(const SliceOptions& options, size_t devices) {
  if (devices >= 1 && options.replicas >= 1 && options.size >= 1 && options.repeats >= 1 &&
      options.memory_gib > 0 && options.rows / options.replicas >= static_cast<int>(devices)) {
    return;
  }
  throw std::invalid_argument(fmt::format(
      "bench slice: {} samples of {} px for {} replicas on each of {} devices with {} GiB, {} "
      "repeats: at least one of each",
      options.rows, options.size, options.replicas, devices, options.memory_gib, options.repeats));
}

// Returns the most samples of a batch whose parts, and the whole where it is needed, fit into every
// device's memory.
int64_t largest_sliced_batch(const SliceOptions& options, CutOn cut, size_t devices) {
  const double row = 3.0 * options.size * options.size;
  // The first device never holds less than the others.
  const double share = 1.0 / static_cast<double>(devices) + (cut == CutOn::host ? 0 : 1);
  return static_cast<int64_t>(options.memory_gib * kGiB / (row * share));
}

std::vector<LinkLoad> sent_over(const ThrottledLinks* links) {
  std::vector<LinkLoad> loads;
  if (links == nullptr) return loads;
  for (int i = 0; i < std::ssize(links->machine().links); ++i) {
    loads.push_back(
        {links->machine().links[i].name, links->sent({i, true}), links->sent({i, false}), 0});
  }
  return loads;
}

void measure_place(Slicing& slicing, const ThrottledLinks* links, bool counts, CutResult& result) {
  const std::vector<LinkLoad> before = sent_over(links);
  const double ms = slicing.run(result.cut);
  if (counts) result.ms.push_back(ms);
  result.bytes = slicing.bytes();
  result.links = sent_over(links);
  for (size_t i = 0; i < before.size(); ++i) {
    result.links[i].down_bytes -= before[i].down_bytes;
    result.links[i].up_bytes -= before[i].up_bytes;
  }
}

void fill_slice_report(const SliceOptions& options, const std::vector<std::string>& names,
                       double whole_bytes, const std::vector<CutResult>& all, Report& report) {
  const bool predicts = !options.machine.gpus.empty();
  Table table{fmt::format("{} samples of {} px for {} replicas on each of {} devices", options.rows,
                          options.size, options.replicas, names.size()),
              {"cut on", "ms", "largest batch"},
              {}};
  if (predicts) table.columns.push_back("predicted ms");
  Table bytes{"Bytes of a batch, MB",
              {"cut on", "device", "from the host", "from another device", "inside the device"},
              {}};
  Table links{"Bytes over each link, MB down / up", {"link"}, {}};
  Plot plot{"slice", "A batch for several replicas", "cut on", "ms", {}, {}};
  for (const CutResult& each : all) {
    const char* cut = to_string(each.cut);
    const Summary ms = report.add({fmt::format("cut on {}", cut), "ms", Better::lower, each.ms});
    const int64_t largest = largest_sliced_batch(options, each.cut, names.size());
    Json result = {{"place", cut}, {"ms", ms.median}, {"largest_batch", largest}};
    table.rows.push_back({cut, with_interval(ms), std::to_string(largest)});
    add_bar(plot, cut, "measured", plot_point(ms));
    for (size_t d = 0; d < names.size(); ++d) {
      const DeviceBytes& moved = each.bytes[d];
      result["devices"].push_back({{"device", names[d]},
                                   {"from_host_bytes", moved.from_host},
                                   {"from_device_bytes", moved.from_device},
                                   {"inside_bytes", moved.inside}});
      bytes.rows.push_back({cut, names[d], megabytes(static_cast<double>(moved.from_host)),
                            megabytes(static_cast<double>(moved.from_device)),
                            megabytes(static_cast<double>(moved.inside))});
    }
    if (predicts) {
      const double predicted = 1e3 * predict_slice(options.machine, whole_bytes, each.cut);
      result["predicted_ms"] = predicted;
      table.rows.back().push_back(significant(predicted));
      add_bar(plot, cut, "predicted", {0, predicted, predicted, predicted});
      links.columns.push_back(cut);
      for (size_t i = 0; i < each.links.size(); ++i) {
        const LinkLoad& load = each.links[i];
        result["links"].push_back(
            {{"name", load.name}, {"down_bytes", load.down_bytes}, {"up_bytes", load.up_bytes}});
        if (links.rows.size() == i) links.rows.push_back({load.name});
        links.rows[i].push_back(
            fmt::format("{} / {}", megabytes(load.down_bytes), megabytes(load.up_bytes)));
      }
    }
    report.results["places"].push_back(std::move(result));
  }
  report.tables = {std::move(table), std::move(bytes)};
  if (predicts) report.tables.push_back(std::move(links));
  report.plots = {std::move(plot)};
  report.notes = {fmt::format(
      "The largest batch is of all replicas together, with {:g} GiB on each device for one batch.",
      options.memory_gib)};
}

}  // namespace

Report bench_slice(const SliceOptions& options) {
  const bool throttled = !options.machine.gpus.empty();
  const size_t count = throttled ? options.machine.gpus.size() : options.devices.size();
  check_slices(options, count);
  std::unique_ptr<ThrottledLinks> links;
  if (throttled) links = std::make_unique<ThrottledLinks>(options.machine);
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    devices.push_back(throttled ? make_throttled_device(*links, static_cast<int>(i))
                                : make_device(options.devices[i]));
    names.push_back(devices.back()->name());
  }
  const size_t part_rows = options.rows / (count * options.replicas);
  Slicing slicing(devices, options.replicas, size_t{3} * options.size * options.size * part_rows);
  std::vector<CutResult> all;
  for (const auto& [name, cut] : kCutOn) {
    if (cut != CutOn::each_device || count > 1) all.push_back({cut, {}, {}, {}});
  }
  for (int run = 0; run < kSliceWarmupRuns + options.repeats; ++run) {
    for (CutResult& each : all) measure_place(slicing, links.get(), run >= kSliceWarmupRuns, each);
  }
  Report report;
  report.bench = "slice";
  report.settings = {{"devices", names},
                     {"machine", options.machine.name},
                     {"replicas", options.replicas},
                     {"batch", options.rows},
                     {"size", options.size},
                     {"memory_gib", options.memory_gib},
                     {"repeats", options.repeats}};
  report.results = {{"devices", names},
                    {"batch", options.rows},
                    {"size", options.size},
                    {"replicas", options.replicas},
                    {"memory_gib", options.memory_gib}};
  if (throttled) report.results["machine"] = to_json(options.machine);
  fill_slice_report(options, names, static_cast<double>(slicing.whole_bytes()), all, report);
  return report;
}

}  // namespace stoker
