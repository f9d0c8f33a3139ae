// The sides that bench_feed() compares: the whole feeder, and its parts alone on the same samples.
// Threads: one per object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/loader.h"
#include "pipeline/source.h"

namespace stoker {

struct FeedWork {
  const Source& source;
  AugmentSpec augment;
  LoaderOptions options;  // with seed 0 and endless epochs
};

// The time that a measurement took.
struct Spent {
  double cpu_seconds = 0;  // of the whole process
  double wall_seconds = 0;
};

// Reads samples, or reads, decodes and augments them, in a plain loop. It has as many threads and
// as many samples as the Loader, but no messages, no ring and no labels.
class PartsAlone {
 public:
  explicit PartsAlone(const FeedWork& work);  // work.source outlives it
  ~PartsAlone();

  // Both do the steps [first, first + steps).
  Spent read(Step first, int64_t steps);
  Spent read_and_decode(Step first, int64_t steps);

 private:
  struct Worker;
  template <class Row>
  Spent each_row(Step first, int64_t steps, const Row& row);

  const FeedWork work_;
  const Sampler sampler_;
  const int depth_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<uint8_t> slabs_;
};

// A Loader that is idle between measurements: its ring is full and its threads sleep, so that
// several can be measured in turn.
class StillLoader {
 public:
  explicit StillLoader(const FeedWork& work);  // work.source outlives it

  // Takes `steps` batches and waits until as many are filled again.
  Spent take(int64_t steps);
  // All steps before this one have been filled.
  Step first_filled() const { return taken_ + ahead_; }
  MemoryPlan memory_plan() const { return loader_.memory_plan(); }

 private:
  const int rows_;
  const int ahead_;
  Step taken_ = 0;
  const std::unique_ptr<Device> device_ = make_host_device();
  const std::unique_ptr<Stream> stream_ = device_->make_stream();
  Loader loader_;
};

// Holds files of another source in memory, to measure without storage. An epoch has each file many
// times. Threads: as every Source.
class MemorySource final : public Source, private SampleStorage {
 public:
  // Reads the first files: at most 2,000, and at most 256 MiB. Throws std::runtime_error if none
  // can be read.
  explicit MemorySource(const Source& files);

  const SourceInfo& info() const override { return info_; }
  int label(SampleId id) const override { return files_.label(id % count()); }
  std::string name(SampleId id) const override;
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override;
  ReadStatus read_annotations(SampleId id, std::span<const uint8_t> bytes,
                              Annotations& out) const override {
    return files_.read_annotations(id % count(), bytes, out);
  }
  ReadStatus read_picture(SampleId id, size_t number, MayWait may_wait,
                          std::vector<uint8_t>& buffer,
                          std::span<const uint8_t>& bytes) const override;
  const SampleStorage& storage() const override { return *this; }

 private:
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override {
    return read(id, buffer, bytes).ok;
  }
  void keep(const ReadStatus& read, std::span<const uint8_t> bytes);
  size_t files_of_each() const { return 1 + info_.pictures.size(); }
  int64_t count() const { return std::ssize(bytes_) / static_cast<int64_t>(files_of_each()); }
  ReadStatus give(size_t file, std::span<const uint8_t>& bytes) const;

  const Source& files_;
  SourceInfo info_;
  // Each sample's own file, then those of its further pictures; empty if it could not be read.
  std::vector<std::vector<uint8_t>> bytes_;
  size_t total_bytes_ = 0;
};

}  // namespace stoker
