#include "bench/suite/feed_parts.h"

#include <chrono>
#include <stdexcept>
#include <thread>

#include "staging/threads.h"
#include "tools/machine/load.h"

namespace stoker {
namespace {

double wall_seconds() { return 1e-9 * static_cast<double>(steady_now_ns()); }

}  // namespace

struct PartsAlone::Worker {
  explicit Worker(const FeedWork& work) : augmenter(work.augment, work.options.feed.decode) {}
  Augmenter augmenter;
  std::vector<uint8_t> file;
};

PartsAlone::PartsAlone(const FeedWork& work)
    : work_(work),
      sampler_({.samples = work.source.size(),
                .rows = work.options.batch_size,
                .seed = work.options.seed}),
      depth_(work.options.ring_depth),
      slabs_(size_t{3} * depth_ * work.options.batch_size * work.augment.output.width *
             work.augment.output.height) {
  for (int i = 0; i < std::max(work.options.feed.workers, 1); ++i) {
    workers_.push_back(std::make_unique<Worker>(work));
  }
}

PartsAlone::~PartsAlone() = default;

// Calls row(worker, epoch, id, row of slabs_) for every row of the steps; each of n threads takes
// every n-th row.
template <class Row>
Spent PartsAlone::each_row(Step first, int64_t steps, const Row& row) {
  const auto part = [&](int64_t number) {
    const int rows = work_.options.batch_size;
    for (Step step = first; step < first + steps; ++step) {
      const int64_t epoch = step / sampler_.steps_per_epoch();
      const int64_t step_in_epoch = step % sampler_.steps_per_epoch();
      for (int i = static_cast<int>(number); i < rows; i += static_cast<int>(workers_.size())) {
        const SampleId id = sampler_.row(epoch, step_in_epoch, 0, i).id;
        row(*workers_[number], epoch, id, step % depth_ * rows + i);
      }
    }
  };
  const double cpu = process_cpu_seconds(), wall = wall_seconds();
  run_threads("the parts of a feed", std::ssize(workers_), part);
  return {process_cpu_seconds() - cpu, wall_seconds() - wall};
}

Spent PartsAlone::read(Step first, int64_t steps) {
  return each_row(first, steps, [this](Worker& worker, int64_t, SampleId id, int64_t) {
    std::span<const uint8_t> bytes;
    work_.source.read(id, worker.file, bytes);
  });
}

Spent PartsAlone::read_and_decode(Step first, int64_t steps) {
  const Size size = work_.augment.output;
  const SampleEncoding encoding = work_.source.encoding();
  const auto row = [&](Worker& worker, int64_t epoch, SampleId id, int64_t slab_row) {
    std::span<const uint8_t> bytes;
    work_.source.read(id, worker.file, bytes);
    const MutableImageView out{slabs_.data() + size_t{3} * slab_row * size.width * size.height,
                               size.width, size.height, ptrdiff_t{3} * size.width};
    Size found;
    // A sample that cannot be decoded costs the Loader the same attempt.
    if (encoding == SampleEncoding::image_file) {
      worker.augmenter.file_row(bytes, work_.options.seed, epoch, id, out, found);
    } else {
      worker.augmenter.raw_row(bytes, encoding == SampleEncoding::raw_planar,
                               work_.source.raw_size(), work_.options.seed, epoch, id, out);
    }
  };
  return each_row(first, steps, row);
}

StillLoader::StillLoader(const FeedWork& work)
    : rows_(work.options.batch_size),
      ahead_(work.options.feed.workers == 0 ? 0 : work.options.ring_depth),
      loader_(work.source, work.augment, {device_.get()}, work.options) {
  take(2 * work.options.ring_depth);
}

Spent StillLoader::take(int64_t steps) {
  const double cpu = process_cpu_seconds(), wall = wall_seconds();
  for (int64_t i = 0; i < steps; ++i) loader_.next(0, *stream_);
  taken_ += steps;
  const double ours = thread_cpu_seconds();
  while (loader_.stats().decode.items < first_filled() * rows_) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const double looking = thread_cpu_seconds() - ours;
  return {process_cpu_seconds() - cpu - looking, wall_seconds() - wall};
}

namespace {

constexpr int64_t kMaxFiles = 2000;
constexpr size_t kMaxBytes = size_t{256} << 20;
constexpr int64_t kTimesPerEpoch = 100;

}  // namespace

MemorySource::MemorySource(const Source& files) : files_(files), info_(files.info()) {
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  for (SampleId id = 0; id < files.size() && count() < kMaxFiles && total_bytes_ < kMaxBytes;
       ++id) {
    keep(files.read(id, buffer, bytes), bytes);
    for (size_t i = 0; i < info_.pictures.size(); ++i) {
      keep(files.read_picture(id, i, MayWait::yes, buffer, bytes), bytes);
    }
  }
  if (total_bytes_ == 0) throw std::runtime_error(files.root() + ": no file could be read");
  info_.size = count() * kTimesPerEpoch;
}

void MemorySource::keep(const ReadStatus& read, std::span<const uint8_t> bytes) {
  if (!read.ok) bytes = {};
  bytes_.emplace_back(bytes.begin(), bytes.end());
  total_bytes_ += bytes.size();
}

std::string MemorySource::name(SampleId id) const {
  return files_.name(id % count()) + "#" + std::to_string(id / count());
}

ReadStatus MemorySource::read(SampleId id, std::vector<uint8_t>&,
                              std::span<const uint8_t>& bytes) const {
  return give(files_of_each() * static_cast<size_t>(id % count()), bytes);
}

ReadStatus MemorySource::read_picture(SampleId id, size_t number, MayWait, std::vector<uint8_t>&,
                                      std::span<const uint8_t>& bytes) const {
  return give(files_of_each() * static_cast<size_t>(id % count()) + 1 + number, bytes);
}

ReadStatus MemorySource::give(size_t file, std::span<const uint8_t>& bytes) const {
  bytes = bytes_[file];
  return bytes.empty() ? ReadStatus{false, "could not be read into memory"} : ReadStatus{};
}

}  // namespace stoker
