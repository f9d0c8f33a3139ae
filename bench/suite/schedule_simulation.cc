#include "bench/suite/schedule_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "bench/suite/task_simulation.h"
#include "train/collective/wire/codec.h"
#include "train/device/buckets.h"

namespace stoker {
namespace {

// A copy of gradients to host memory is made in pieces of this size (train/collective/device.h).
constexpr int64_t kPieceBytes = int64_t{8} << 20;
constexpr int64_t kFloatBytes = sizeof(float);
constexpr int64_t kMaxBuckets = 1000;
// The bytes that a server's update reads and writes per weight, beside the gradients: the weight
// and its momentum, both ways.
constexpr double kUpdateBytes = 4.0 * kFloatBytes;

using Tasks = std::vector<int>;  // indices

void check_schedule(const LinkMachine& machine, const TrainingWork& work,
                    const ScheduleOptions& options) {
  double shares = 0;
  bool good = work.rows >= 1 && work.row_bytes > 0 && work.step_seconds > 0 &&
              work.forward_share >= 0 && work.forward_share < 1 && !work.parts.empty();
  for (const BackwardPart& part : work.parts) {
    good = good && part.share >= 0 && part.floats >= 0;
    shares += part.share;
  }
  if (!good || std::abs(shares - 1) > 1e-6) {
    throw std::invalid_argument(
        fmt::format("a step of {} rows of {} bytes in {} s, forward {}, with {} parts of the "
                    "backward pass whose shares add up to {}",
                    work.rows, work.row_bytes, work.step_seconds, work.forward_share,
                    work.parts.size(), shares));
  }
  if (options.gpus < 1 || options.gpus > std::ssize(machine.gpus) || options.slots < 0 ||
      options.slots > 3 || options.ring_depth < 1 || options.warmup < 1 || options.steps < 1 ||
      options.cores < 0 || (options.cores > 0 && !(options.core_seconds_per_row > 0))) {
    throw std::invalid_argument(fmt::format(
        "{} of {}'s {} GPUs, {} slots, a ring of {}, {} steps after {}, {} cores that take {} s "
        "for a row",
        options.gpus, machine.name, machine.gpus.size(), options.slots, options.ring_depth,
        options.steps, options.warmup, options.cores, options.core_seconds_per_row));
  }
  const bool fp32 = options.wire == GradWire::fp32;
  const bool ring_wire = fp32 || options.wire == GradWire::bf16;
  if (options.reduce == ReduceKind::automatic || options.reduce == ReduceKind::device ||
      (options.reduce == ReduceKind::nccl && !ring_wire) ||
      (options.reduce == ReduceKind::server_device && !fp32)) {
    throw std::invalid_argument(
        fmt::format("{} with gradients as {} has no prediction: there are all-reduce:nccl (fp32, "
                    "bf16), all-reduce:host, parameter-server (in host memory), "
                    "parameter-server:device (fp32), independent and none",
                    to_string(options.reduce), to_string(options.wire)));
  }
}

double wire_bytes(GradWire wire, int64_t floats) {
  const int64_t block = block_floats(wire);
  return static_cast<double>(floats / block * block_bytes(wire, block) +
                             (floats % block > 0 ? block_bytes(wire, floats % block) : 0));
}

// Down and up of each link, then the host's memory.
std::vector<SharedResource> resources_of(const LinkMachine& machine) {
  std::vector<SharedResource> resources;
  for (const MachineLink& link : machine.links) {
    resources.push_back({link.name + " down", link.down});
    resources.push_back({link.name + " up", link.up});
  }
  resources.push_back({"host memory", machine.memory_per_second});
  return resources;
}

SimulatedTask copy_task(const LinkMachine& machine, Tasks after, double bytes, const Route& route) {
  SimulatedTask task{std::move(after), machine.latency_seconds, bytes, {}};
  for (const LinkUse& use : route.links) task.uses.push_back({2 * use.link + (use.down ? 0 : 1)});
  if (route.memory > 0) {
    const auto memory = static_cast<int>(2 * machine.links.size());
    task.uses.push_back({memory, static_cast<double>(route.memory)});
  }
  return task;
}

// The tasks of all steps. Each function adds tasks and returns their indices.
class Schedule {
 public:
  Schedule(const LinkMachine& machine, const TrainingWork& work, const ScheduleOptions& options)
      : machine_(machine),
        work_(work),
        options_(options),
        gpus_(options.gpus),
        resources_(resources_of(machine)) {
    memory_ = static_cast<int>(resources_.size()) - 1;
    if (options.cores > 0) {
      cores_ = memory_ + 1;
      resources_.push_back({"cores", options.cores});
    }
    for (int gpu = 0; gpu < gpus_; ++gpu) lanes_.emplace_back();
    // While the counted steps run, the feed is ahead as far as its slabs and slots allow.
    const int ahead = options.ring_depth + options.slots + 1;
    end_ = options.warmup + options.steps;
    for (int step = 0; step < end_ + ahead; ++step) add_step();
  }

  SchedulePrediction predict() const {
    const std::vector<TaskTimes> times = simulate(resources_, tasks_);
    SchedulePrediction prediction;
    const int counted = options_.steps;
    double begin = 0, end = 0;
    for (const Lane& lane : lanes_) {
      begin = std::max(begin, times[lane.updates[options_.warmup - 1]].end);
      end = std::max(end, times[lane.updates[end_ - 1]].end);
      for (int step = options_.warmup; step < end_; ++step) {
        prediction.gap_seconds +=
            times[lane.forwards[step]].begin - times[lane.updates[step - 1]].end;
        prediction.exchange_seconds +=
            times[lane.updates[step]].end - times[lane.backwards[step]].end;
      }
    }
    prediction.gap_seconds /= counted * gpus_;
    prediction.exchange_seconds /= counted * gpus_;
    prediction.step_seconds = (end - begin) / counted;
    prediction.images_per_second =
        static_cast<double>(work_.rows) * gpus_ / prediction.step_seconds;
    add_loads(prediction);
    return prediction;
  }

 private:
  // The steps that a GPU has done: a task per step.
  struct Lane {
    Tasks feeds, copies, forwards, backwards, updates;
  };

  int add(SimulatedTask task) {
    tasks_.push_back(std::move(task));
    return static_cast<int>(tasks_.size()) - 1;
  }

  int add_copy(Tasks after, double bytes, const Route& route) {
    return add(copy_task(machine_, std::move(after), bytes, route));
  }

  int64_t all_floats() const {
    int64_t floats = 0;
    for (const BackwardPart& part : work_.parts) floats += part.floats;
    return floats;
  }
  double global_rows() const { return static_cast<double>(work_.rows) * gpus_; }

  void add_step() {
    const auto step = static_cast<int>(lanes_[0].updates.size());
    for (int gpu = 0; gpu < gpus_ && !options_.resident; ++gpu) add_feed(gpu, step);
    for (int gpu = 0; gpu < gpus_ && !options_.resident; ++gpu) add_batch_copy(gpu, step);
    std::vector<Tasks> parts(work_.parts.size());  // by part, then GPU
    for (int gpu = 0; gpu < gpus_; ++gpu) {
      Lane& lane = lanes_[gpu];
      Tasks after;
      if (!options_.resident) after.push_back(lane.copies.back());
      if (step > 0) after.push_back(lane.updates.back());
      int last = add({after, work_.step_seconds * work_.forward_share, 0, {}});
      lane.forwards.push_back(last);
      for (size_t part = 0; part < parts.size(); ++part) {
        const double seconds =
            work_.step_seconds * (1 - work_.forward_share) * work_.parts[part].share;
        last = add({{last}, seconds, 0, {}});
        parts[part].push_back(last);
      }
      lane.backwards.push_back(last);
    }
    const std::vector<Tasks> sums = exchange(parts);
    for (int gpu = 0; gpu < gpus_; ++gpu) {
      Tasks after = sums[gpu];
      after.push_back(lanes_[gpu].backwards.back());
      lanes_[gpu].updates.push_back(add({after, 0, 0, {}}));
    }
  }

  // Decodes what crosses the bus for this GPU. The whole batch is decoded once, for the first GPU,
  // where GPUs cut it.
  void add_feed(int gpu, int step) {
    Lane& lane = lanes_[gpu];
    if (options_.slice != CutOn::host && gpu > 0) {
      lane.feeds.push_back(lanes_[0].feeds.back());
      return;
    }
    SimulatedTask task;
    if (step > 0) task.after.push_back(lane.feeds.back());
    if (step >= options_.ring_depth) {  // the slab is free
      for (const Lane& reader : lanes_) {
        if (options_.slice == CutOn::each_device || &reader == &lane) {
          task.after.push_back(reader.copies[step - options_.ring_depth]);
        }
      }
    }
    task.units = options_.slice == CutOn::host ? static_cast<double>(work_.rows) : global_rows();
    // A file is written once and read once, its pixels are written; the copy reads them.
    task.uses.push_back({memory_, 2 * options_.file_bytes_per_row + work_.row_bytes});
    if (cores_ >= 0) task.uses.push_back({cores_, options_.core_seconds_per_row});
    lane.feeds.push_back(add(std::move(task)));
  }

  void add_batch_copy(int gpu, int step) {
    Lane& lane = lanes_[gpu];
    const bool whole = options_.slice != CutOn::host;
    const bool from_first = options_.slice == CutOn::first_device && gpu > 0;
    Tasks after = {from_first ? lanes_[0].copies.back() : lane.feeds.back()};
    if (step > 0) after.push_back(lane.copies.back());
    if (options_.slots == 0) {
      if (step > 0) after.push_back(lane.updates.back());  // on the stream of the steps
    } else if (step >= options_.slots) {
      after.push_back(lane.backwards[step - options_.slots]);
    }
    // The first GPU's slot is also read by the copies to the others.
    if (options_.slice == CutOn::first_device && gpu == 0 && step >= std::max(1, options_.slots)) {
      for (int other = 1; other < gpus_; ++other) {
        after.push_back(lanes_[other].copies[step - std::max(1, options_.slots)]);
      }
    }
    const double rows = whole && !from_first ? global_rows() : static_cast<double>(work_.rows);
    lane.copies.push_back(
        add_copy(std::move(after), rows * work_.row_bytes,
                 from_first ? route_between(machine_, 0, gpu) : route_to_gpu(machine_, gpu)));
  }

  // Returns the tasks that end a step's sum, by GPU.
  std::vector<Tasks> exchange(const std::vector<Tasks>& parts) {
    if (gpus_ == 1) return std::vector<Tasks>(1);
    switch (options_.reduce) {
      case ReduceKind::nccl:
        return ring(parts);
      case ReduceKind::host:
        return through_host(parts);
      case ReduceKind::server:
      case ReduceKind::server_host:
        return server(parts);
      case ReduceKind::server_device:
        return server_on_first(parts);
      default:
        return std::vector<Tasks>(static_cast<size_t>(gpus_));
    }
  }

  std::vector<Tasks> ring(const std::vector<Tasks>& parts) {
    Tasks last;
    const double messages = 2.0 * (gpus_ - 1);
    for (size_t part = 0; part < parts.size(); ++part) {
      Tasks after = parts[part];  // of all GPUs: a sum needs each
      after.insert(after.end(), last.begin(), last.end());
      last.clear();
      const double bytes = messages / gpus_ * wire_bytes(options_.wire, work_.parts[part].floats);
      for (int gpu = 0; gpu < gpus_; ++gpu) {
        const int sent = add_copy(after, bytes, route_between(machine_, gpu, (gpu + 1) % gpus_));
        tasks_[sent].seconds = messages * machine_.latency_seconds;
        last.push_back(sent);
      }
    }
    return std::vector<Tasks>(static_cast<size_t>(gpus_), last);
  }

  std::vector<Tasks> through_host(const std::vector<Tasks>& parts) {
    struct Piece {
      double bytes;
      Tasks arrived;  // by GPU
    };
    std::vector<Piece> pieces;
    std::vector<Tasks> last(static_cast<size_t>(gpus_));  // on each GPU's stream of copies
    for (size_t part = 0; part < parts.size(); ++part) {
      int64_t left = work_.parts[part].floats * kFloatBytes;
      for (; left > 0; left -= kPieceBytes) {
        Piece piece{static_cast<double>(std::min(left, kPieceBytes)), {}};
        for (int gpu = 0; gpu < gpus_; ++gpu) {
          Tasks after = last[gpu];
          after.push_back(parts[part][gpu]);
          piece.arrived.push_back(
              add_copy(std::move(after), piece.bytes, route_to_host(machine_, gpu)));
          last[gpu] = {piece.arrived.back()};
        }
        pieces.push_back(std::move(piece));
      }
    }
    if (options_.wire != GradWire::fp32 && !pieces.empty()) join(pieces);
    Tasks summed;
    for (const Piece& piece : pieces) {
      Tasks after = piece.arrived;
      after.insert(after.end(), summed.begin(), summed.end());
      // Every GPU's buffer is read, and every GPU's sum written.
      summed = {add({after, 0, 2 * gpus_ * piece.bytes, {{memory_}}})};
      for (int gpu = 0; gpu < gpus_; ++gpu) {
        Tasks back = last[gpu];
        back.push_back(summed.front());
        last[gpu] = {add_copy(std::move(back), piece.bytes, route_to_gpu(machine_, gpu))};
      }
    }
    return last;
  }

  // Encoded gradients are summed when all of them have come.
  template <class Piece>
  static void join(std::vector<Piece>& pieces) {
    Piece all{0, pieces.back().arrived};
    for (const Piece& piece : pieces) all.bytes += piece.bytes;
    pieces = {all};
  }

  std::vector<Tasks> server(const std::vector<Tasks>& parts) {
    const int64_t floats = all_floats();
    const auto count = static_cast<double>(floats);
    if (floats == 0) return std::vector<Tasks>(static_cast<size_t>(gpus_));
    Tasks pushed;
    for (int gpu = 0; gpu < gpus_; ++gpu) {
      pushed.push_back(add_copy({parts.back()[gpu]}, wire_bytes(options_.wire, floats),
                                route_to_host(machine_, gpu)));
    }
    const double sum_bytes = kFloatBytes * (gpus_ + 1) * count;  // all are read, the sum is written
    const int updated =
        add({pushed, 0, sum_bytes + (kFloatBytes + kUpdateBytes) * count, {{memory_}}});
    std::vector<Tasks> pulled;
    for (int gpu = 0; gpu < gpus_; ++gpu) {
      pulled.push_back({add_copy({updated}, kFloatBytes * count, route_to_gpu(machine_, gpu))});
    }
    return pulled;
  }

  // Buckets are pushed to the first GPU while the backward pass runs. As with a ring, what sums and
  // updates take of a GPU's memory is not in it.
  std::vector<Tasks> server_on_first(const std::vector<Tasks>& parts) {
    const int64_t floats = all_floats();
    std::vector<Tasks> last(static_cast<size_t>(gpus_));  // on each GPU's stream of copies
    if (floats == 0) return last;
    for (size_t part = 0; part < parts.size(); ++part) {
      const double bytes = wire_bytes(GradWire::fp32, work_.parts[part].floats);
      for (int gpu = 1; gpu < gpus_; ++gpu) {
        Tasks after = last[gpu];
        after.push_back(parts[part][gpu]);
        last[gpu] = {add_copy(std::move(after), bytes, route_between(machine_, gpu, 0))};
      }
    }
    Tasks pushed = {parts.back()[0]};
    for (int gpu = 1; gpu < gpus_; ++gpu) pushed.push_back(last[gpu].front());
    std::vector<Tasks> pulled = {pushed};
    for (int gpu = 1; gpu < gpus_; ++gpu) {
      pulled.push_back(
          {add_copy(pushed, wire_bytes(GradWire::fp32, floats), route_between(machine_, 0, gpu))});
    }
    return pulled;
  }

  void add_loads(SchedulePrediction& prediction) const {
    std::vector<double> amounts(resources_.size(), 0);  // of all steps
    for (const SimulatedTask& task : tasks_) {
      for (const ResourceUse& use : task.uses) {
        amounts[use.resource] += task.units * use.per_unit;
      }
    }
    const auto steps = static_cast<double>(lanes_[0].updates.size());
    const auto per_step = [&](int resource) { return amounts[resource] / steps; };
    const auto busy = [&](int resource) {
      return per_step(resource) / resources_[resource].per_second / prediction.step_seconds;
    };
    for (int link = 0; link < std::ssize(machine_.links); ++link) {
      const int down = 2 * link, up = down + 1;
      prediction.links.push_back({machine_.links[link].name, per_step(down), per_step(up),
                                  std::max(busy(down), busy(up))});
    }
    prediction.links.push_back({"host memory", per_step(memory_), 0, busy(memory_)});
  }

  const LinkMachine& machine_;
  const TrainingWork& work_;
  const ScheduleOptions& options_;
  const int gpus_;
  std::vector<SharedResource> resources_;  // those of the machine, then its cores
  std::vector<SimulatedTask> tasks_;
  std::vector<Lane> lanes_;
  int memory_ = -1, cores_ = -1;
  int end_ = 0;  // of the counted steps
};

}  // namespace

const char* to_string(CutOn cut) {
  for (const auto& [name, value] : kCutOn) {
    if (value == cut) return name;
  }
  return "";
}

SchedulePrediction predict_schedule(const LinkMachine& machine, const TrainingWork& work,
                                    const ScheduleOptions& options) {
  check_schedule(machine, work, options);
  return Schedule(machine, work, options).predict();
}

double predict_slice(const LinkMachine& machine, double bytes, CutOn cut) {
  const auto gpus = static_cast<int>(machine.gpus.size());
  const double part = bytes / gpus;
  std::vector<SimulatedTask> tasks;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const bool from_first = cut == CutOn::first_device && gpu > 0;
    const bool whole = cut != CutOn::host && !from_first;
    tasks.push_back(
        copy_task(machine, from_first ? Tasks{0} : Tasks{}, whole ? bytes : part,
                  from_first ? route_between(machine, 0, gpu) : route_to_gpu(machine, gpu)));
  }
  double end = 0;
  for (const TaskTimes& times : simulate(resources_of(machine), tasks)) {
    end = std::max(end, times.end);
  }
  return end;
}

std::vector<BackwardPart> even_parts(int64_t floats, int64_t bucket_bytes) {
  const int64_t bucket = bucket_bytes / kFloatBytes;
  if (floats < 0 || bucket_bytes < 0 || (bucket_bytes > 0 && bucket == 0) ||
      (bucket > 0 && floats / bucket > kMaxBuckets)) {
    throw std::invalid_argument(fmt::format(
        "{} gradients in buckets of {} bytes: at most {} buckets of whole gradients, or 0 for one",
        floats, bucket_bytes, kMaxBuckets));
  }
  std::vector<BackwardPart> parts;
  for (int64_t left = floats; left > 0 || parts.empty();) {
    const int64_t full = parts.empty() ? std::min(bucket, kFirstBucketBytes / kFloatBytes) : bucket;
    const int64_t count = bucket > 0 ? std::min(left, full) : left;
    parts.push_back(
        {floats > 0 ? static_cast<double>(count) / static_cast<double>(floats) : 1, count});
    left -= count;
  }
  return parts;
}

}  // namespace stoker
