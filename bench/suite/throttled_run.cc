#include "bench/suite/throttled_run.h"

#include <algorithm>
#include <barrier>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <thread>

#include "bench/suite/throttled_device.h"
#include "staging/pinned_ring.h"
#include "staging/stager.h"
#include "staging/threads.h"
#include "train/collective/device.h"

namespace stoker {
namespace {

// The host queues steps so far ahead of the devices.
constexpr int kAhead = 2;
// A sleep that begins so soon after the last one goes on from its end: the machine woke it late.
constexpr double kSlack = 0.3e-3;

// The computing of one device, in its own time. Threads: the stream's.
class EmulatedCompute {
 public:
  void sleep(double seconds) {
    Clock& clock = steady_clock();
    const double now = clock.seconds();
    end_ = (now - end_ < kSlack ? end_ : now) + seconds;
    if (end_ > now) clock.sleep(end_ - now);
  }

 private:
  double end_ = 0;
};

// How gradients are summed; empty: not at all.
struct Sums {
  std::function<void(int rank, const float* gradients, std::span<float> result, BufferRange range)>
      start;
  std::function<void(int rank)> finish;
};

// Events of one step, on the compute stream.
struct StepMarks {
  std::unique_ptr<Event> begin, end;
};

class ThrottledReplica {
 public:
  ThrottledReplica(ThrottledLinks& links, int gpu, const BatchShape& shape,
                   const TrainingWork& work, const ScheduleOptions& options)
      : work_(work),
        end_(options.warmup + options.steps),
        device_(make_throttled_device(links, gpu)),
        ring_(*device_, BatchLayout(shape), options.ring_depth),
        stream_(device_->make_stream()) {
    int64_t floats = 0;
    for (const BackwardPart& part : work.parts) floats += part.floats;
    gradients_ = device_->allocate(static_cast<size_t>(floats) * sizeof(float), MemoryKind::device);
    sum_ = device_->allocate(static_cast<size_t>(floats) * sizeof(float), MemoryKind::device);
    for (Step step = 0; step < end_; ++step) {
      marks_.push_back({device_->make_event(true), device_->make_event(true)});
    }
    stager_ = std::make_unique<Stager>(*device_, ring_, options.slots, 0, end_);
    feed_ = start_thread("the feed", [this] {
      for (Step step = 0; step < end_ && ring_.wait_free(step); ++step) {
        ring_.begin(step);
        ring_.commit(step);
      }
    });
  }

  DeviceReplica ends() { return {device_.get(), stream_.get()}; }
  const std::vector<StepMarks>& marks() const { return marks_; }

  // `meet` is where replicas wait for each other.
  void run(int rank, const Sums& sums, std::barrier<>& meet) {
    const auto* gradients = reinterpret_cast<const float*>(gradients_->data());
    const auto floats = static_cast<int64_t>(sum_->size_bytes() / sizeof(float));
    const std::span<float> sum(reinterpret_cast<float*>(sum_->data()), static_cast<size_t>(floats));
    for (Step step = 0; step < end_; ++step) {
      if (step >= kAhead) marks_[step - kAhead].end->synchronize();
      DeviceBatch batch = stager_->next(*stream_);
      stream_->record(*marks_[step].begin);
      compute(work_.forward_share);
      int64_t end = floats;
      for (const BackwardPart& part : work_.parts) {
        compute((1 - work_.forward_share) * part.share);
        if (sums.start) sums.start(rank, gradients, sum, {end - part.floats, end});
        end -= part.floats;
      }
      batch = {};
      meet.arrive_and_wait();
      if (sums.finish) sums.finish(rank);
      stream_->record(*marks_[step].end);
    }
    marks_.back().end->synchronize();
  }

 private:
  void compute(double share) {
    stream_->call([this, seconds = share * work_.step_seconds] { compute_.sleep(seconds); });
  }

  const TrainingWork& work_;
  const Step end_;
  const std::unique_ptr<Device> device_;
  PinnedRing ring_;
  std::unique_ptr<Memory> gradients_, sum_;
  std::vector<StepMarks> marks_;
  EmulatedCompute compute_;
  const std::unique_ptr<Stream> stream_;
  std::unique_ptr<Stager> stager_;
  std::jthread feed_;  // joined first; the stager has taken all slabs by then
};

using Replicas = std::vector<std::unique_ptr<ThrottledReplica>>;

// Returns the rate and the gaps of the steps after the warm-up.
ThrottledResult throttled_result(const Replicas& replicas, int rows, int warmup) {
  const Event& zero = *replicas.front()->marks().front().begin;
  double begin_ms = 0, end_ms = 0, gap_ms = 0;
  int gaps = 0;
  for (const auto& replica : replicas) {
    const std::vector<StepMarks>& marks = replica->marks();
    begin_ms = std::max(begin_ms, marks[warmup - 1].end->elapsed_ms(zero));
    end_ms = std::max(end_ms, marks.back().end->elapsed_ms(zero));
    for (size_t step = warmup; step < marks.size(); ++step, ++gaps) {
      gap_ms += marks[step].begin->elapsed_ms(*marks[step - 1].end);
    }
  }
  const auto steps = static_cast<double>(replicas.front()->marks().size() - warmup);
  ThrottledResult result;
  result.images_per_second =
      1e3 * rows * static_cast<double>(replicas.size()) * steps / (end_ms - begin_ms);
  result.gap_seconds = 1e-3 * gap_ms / gaps;
  return result;
}

}  // namespace

ThrottledResult run_throttled(const LinkMachine& machine, const TrainingWork& work,
                              const BatchShape& shape, const ScheduleOptions& options) {
  ThrottledLinks links(machine);
  BatchShape staged = shape;
  if (options.slice == CutOn::each_device) staged.rows *= options.gpus;
  Replicas replicas;
  std::vector<DeviceReplica> ends;
  for (int gpu = 0; gpu < options.gpus; ++gpu) {
    replicas.push_back(std::make_unique<ThrottledReplica>(links, gpu, staged, work, options));
    ends.push_back(replicas.back()->ends());
  }
  std::unique_ptr<Collective> host;
  std::unique_ptr<DeviceRing> ring;
  Sums sums;
  if (options.reduce == ReduceKind::host && options.gpus > 1) {
    host = make_staged_collective(ends, make_host_collective(options.gpus));
    sums.start = [to = host->ranges()](int rank, const float* gradients, std::span<float> result,
                                       BufferRange range) {
      to->start(rank, {&gradients, 1}, result, range);
    };
    sums.finish = [to = host->ranges()](int rank) { to->finish(rank); };
  } else if (options.reduce == ReduceKind::nccl && options.gpus > 1) {
    int64_t floats = 0;
    for (const BackwardPart& part : work.parts) floats += part.floats;
    ring = std::make_unique<DeviceRing>(ends, floats);
    sums.start = [to = ring.get()](int rank, const float* gradients, std::span<float> result,
                                   BufferRange range) {
      to->start(rank, gradients, result.data(), range);
    };
    sums.finish = [to = ring.get()](int rank) { to->finish(rank); };
  }
  std::barrier<> meet(options.gpus);
  run_threads("replicas", options.gpus,
              [&](int64_t rank) { replicas[rank]->run(static_cast<int>(rank), sums, meet); });
  ThrottledResult result = throttled_result(replicas, shape.rows, options.warmup);
  const double steps = options.warmup + options.steps;
  for (int link = 0; link < std::ssize(machine.links); ++link) {
    result.links.push_back({machine.links[link].name, links.sent({link, true}) / steps,
                            links.sent({link, false}) / steps, 0});
  }
  return result;
}

DeviceRing::DeviceRing(std::span<const DeviceReplica> replicas, int64_t floats)
    : meet_(std::ssize(replicas)) {
  if (replicas.empty()) throw std::invalid_argument("a ring without devices");
  for (const DeviceReplica& replica : replicas) {
    Rank rank;
    rank.replica = replica;
    Device& device = *replica.device;
    rank.inbox = device.allocate(static_cast<size_t>(floats) * sizeof(float), MemoryKind::device);
    rank.given = device.make_event();
    rank.done = device.make_event();
    for (size_t turn = 0; turn < 2 * replicas.size(); ++turn) {
      rank.sent.push_back(device.make_event());
    }
    rank.stream = device.make_stream();
    ranks_.push_back(std::move(rank));
  }
}

void DeviceRing::start(int rank, const float* gradients, float* result, BufferRange range) {
  Rank& own = ranks_[rank];
  own.gradients = gradients;
  own.result = result;
  own.replica.stream->record(*own.given);
  own.stream->wait(*own.given);
  // An event can only be waited for when it was recorded, so one thread queues for all ranks.
  meet_.arrive_and_wait();
  if (rank == 0) queue(range);
  meet_.arrive_and_wait();
}

void DeviceRing::finish(int rank) {
  Rank& own = ranks_[rank];
  own.stream->record(*own.done);
  own.replica.stream->wait(*own.done);
}

BufferRange DeviceRing::part(BufferRange range, int index) const {
  const auto ranks = static_cast<int64_t>(ranks_.size());
  const int64_t position = (index % ranks + ranks) % ranks, count = range.end - range.begin;
  return {range.begin + count * position / ranks, range.begin + count * (position + 1) / ranks};
}

void DeviceRing::queue(BufferRange range) {
  const auto ranks = static_cast<int>(ranks_.size());
  const auto bytes = [](BufferRange part) {
    return static_cast<size_t>(part.end - part.begin) * sizeof(float);
  };
  for (Rank& own : ranks_) {
    own.stream->copy(own.result + range.begin, own.gradients + range.begin, bytes(range),
                     CopyKind::device_to_device);
  }
  for (int turn = 0; turn < 2 * (ranks - 1); ++turn) {
    const bool sums = turn < ranks - 1;
    for (int rank = 0; rank < ranks; ++rank) {
      Rank &own = ranks_[rank], &next = after(rank);
      const BufferRange sent = part(range, rank - turn);
      float* target = sums ? reinterpret_cast<float*>(next.inbox->data()) : next.result;
      own.stream->copy(target + sent.begin, own.result + sent.begin, bytes(sent),
                       CopyKind::device_to_device);
      own.stream->record(*own.sent[turn]);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      Rank& next = after(rank);
      next.stream->wait(*ranks_[rank].sent[turn]);
      if (!sums) continue;
      const BufferRange got = part(range, rank - turn);
      const float* values = reinterpret_cast<const float*>(next.inbox->data());
      next.stream->call([result = next.result, values, got] {
        for (int64_t i = got.begin; i < got.end; ++i) result[i] += values[i];
      });
    }
  }
}

}  // namespace stoker
