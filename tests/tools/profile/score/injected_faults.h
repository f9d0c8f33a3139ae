// Injects known faults into a feed, to score a profiler: sources, stores and devices that are
// slower than the ones that they wrap, processes that take the cores, and a quota of a control
// group. Owner: profile_score; what they wrap outlives them. Threads: as what they wrap.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "pipeline/source.h"
#include "staging/device.h"
#include "staging/mutex.h"
#include "tests/support/object_server.h"
#include "tests/support/temp_folder.h"

namespace stoker {

struct SlowReads {
  double latency_s = 0;   // of every read, no matter how many run at once
  double slow_share = 0;  // of the samples; these take slow_latency_s instead
  double slow_latency_s = 0;
  double images_per_second = 0;  // > 0: the limit of the storage, for all threads together
};

// Reads `source` as if it were on storage with these SlowReads.
class SlowSource final : public Source {
 public:
  SlowSource(const Source& source, const SlowReads& slow)
      : source_(source), slow_(slow), info_(source.info()) {
    info_.root.clear();  // because no file can be evicted from the page cache
  }
  const SourceInfo& info() const override { return info_; }
  int label(SampleId id) const override { return source_.label(id); }
  std::string name(SampleId id) const override { return source_.name(id); }
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override;

 private:
  const Source& source_;
  const SlowReads slow_;
  SourceInfo info_;
  mutable Mutex mutex_;
  mutable int64_t next_ns_ GUARDED_BY(mutex_) = 0;  // when the storage can begin another read
};

// Files in memory. Every `period`-th one is from `rare`: a few large pictures among small ones.
class MixedSource final : public Source {
 public:
  MixedSource(std::vector<std::vector<uint8_t>> usual, std::vector<std::vector<uint8_t>> rare,
              int64_t period);
  const SourceInfo& info() const override { return info_; }
  int label(SampleId id) const override { return static_cast<int>(id % 2); }
  std::string name(SampleId id) const override { return std::to_string(id); }
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override;

 private:
  const std::vector<std::vector<uint8_t>> usual_, rare_;
  const int64_t period_;
  const SourceInfo info_{.size = 100'000, .class_names = {"a", "b"}, .fingerprint = 1};
};

struct SlowStore {
  double answer_s = 0;           // before every answer
  double bytes_per_second = 0;   // > 0: of all answers together
  int throttled_of = 0;          // > 0: one of so many requests is told to slow down
  int requests = 0;              // StoreOptions::requests
  double cached_share = 0;       // of the bytes, that have a place in a cache on a disk
  bool cache_is_filled = false;  // before the run
};

// Pictures in tar shards, on a disk and in a store.
class StoredPictures {
 public:
  StoredPictures(const std::vector<std::vector<uint8_t>>& files, int samples);
  std::unique_ptr<Source> open_on_disk() const;
  // One source at a time. It outlives neither this object nor the next call.
  std::unique_ptr<Source> open_in_store(const SlowStore& slow) const;
  int64_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<Source> open_at(const SlowStore& slow, const std::string& cache) const;

  TempFolder folder_;
  int64_t bytes_ = 0;
  mutable std::unique_ptr<TempFolder> cache_;
  mutable ObjectServer server_;
  mutable Mutex mutex_;
  mutable int64_t next_ns_ GUARDED_BY(mutex_) = 0;  // when the store can begin another answer
};

// Makes a device whose memory the host cannot read, and whose copies take `copy_s` longer.
std::unique_ptr<Device> make_slow_copy_device(double copy_s);

// Processes that keep one core busy each, until this object is destroyed.
class NoisyNeighbours {
 public:
  explicit NoisyNeighbours(int count);
  ~NoisyNeighbours();
  NoisyNeighbours(const NoisyNeighbours&) = delete;
  NoisyNeighbours& operator=(const NoisyNeighbours&) = delete;

 private:
  std::vector<pid_t> processes_;
};

// Keeps the calling thread, and the threads that it starts, on the first `count` of its cores until
// this object is destroyed; 0: all cores.
class FewerCores {
 public:
  explicit FewerCores(int count);
  ~FewerCores();
  FewerCores(const FewerCores&) = delete;
  FewerCores& operator=(const FewerCores&) = delete;

 private:
  std::vector<uint8_t> before_;  // a cpu_set_t
};

// Puts the calling thread, and the threads that it starts, into a control group (version 1) of so
// many cores until this object is destroyed; 0: no quota. It needs root.
class CpuQuota {
 public:
  explicit CpuQuota(double cores);
  ~CpuQuota();
  CpuQuota(const CpuQuota&) = delete;
  CpuQuota& operator=(const CpuQuota&) = delete;

 private:
  std::string group_;  // its folder; "": none
};

}  // namespace stoker
