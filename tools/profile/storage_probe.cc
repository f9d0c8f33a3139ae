#include "tools/profile/storage_probe.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "pipeline/random/random_key.h"
#include "staging/stage_stats.h"
#include "staging/threads.h"

namespace stoker {
namespace {

// The number of samples that are evicted from the cache before each cold run.
constexpr int64_t kColdSamples = 512;

// Reading them into the cache again takes at most this long.
constexpr double kRestoreSeconds = 5;

// Returns a sample of the run; the seed decides the order.
SampleId sample_of(const Source& source, uint64_t seed, int64_t number) {
  return RandomKey(seed, 0, number).below(0, source.size());
}

// Reads at most `most` samples as fast as possible and returns the rate.
double rate_of(const Source& source, int threads, double seconds, uint64_t seed, int64_t most) {
  std::atomic<int64_t> next{0}, done{0};
  const int64_t begin_ns = steady_now_ns();
  const auto end_ns = begin_ns + static_cast<int64_t>(seconds * 1e9);
  std::atomic<int64_t> last_ns{begin_ns};
  // A store is asked as a feed asks it.
  const auto look_ahead =
      source.storage().look_ahead([&source, seed, most, number = int64_t{0}](SampleId& id) mutable {
        if (number >= most) return NextSample::end;
        id = sample_of(source, seed, number++);
        return NextSample::found;
      });
  run_threads("reading", threads, [&](int64_t) {
    std::vector<uint8_t> buffer;
    std::span<const uint8_t> bytes;
    while (steady_now_ns() < end_ns) {
      const int64_t number = next.fetch_add(1);
      if (number >= most) break;
      static_cast<void>(source.read(sample_of(source, seed, number), buffer, bytes));
      done.fetch_add(1);
      last_ns.store(steady_now_ns());
    }
  });
  const double passed = static_cast<double>(last_ns.load() - begin_ns) * 1e-9;
  return passed > 0 ? static_cast<double>(done.load()) / passed : -1;
}

// Returns -1 if the files cannot be evicted from the page cache.
double cold_rate(const Source& source, int threads, double seconds, uint64_t seed) {
  int64_t evicted = 0;
  for (int64_t i = 0; i < kColdSamples; ++i) {
    evicted += evict_from_cache(source, sample_of(source, seed, i));
  }
  if (evicted < kColdSamples) return -1;
  return rate_of(source, threads, seconds, seed, kColdSamples);
}

}  // namespace

bool evict_from_cache(const Source& source, SampleId id) {
  if (source.root().empty() || source.encoding() != SampleEncoding::image_file) return false;
  const int file = open((source.root() + "/" + source.name(id)).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  // Pages that are not written back yet would stay.
  fdatasync(file);
  const bool evicted = posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0;
  close(file);
  return evicted;
}

StorageRates probe_storage(const Source& source, const StorageProbe& probe) {
  StorageRates rates;
  const auto seed = [&](uint64_t run) { return probe.seed * 4 + run; };
  constexpr int64_t kAll = int64_t{1} << 62;
  rates.cold = cold_rate(source, probe.threads, probe.seconds_each, seed(0));
  rates.cold_twice = cold_rate(source, 2 * probe.threads, probe.seconds_each, seed(1));
  // Warm: samples that were just read, or that are in memory.
  const int64_t known = rates.cold < 0 ? kAll : kColdSamples;
  // The next run finds the files in memory again.
  if (known < kAll) {
    rate_of(source, probe.threads, kRestoreSeconds, seed(0), known);
    rate_of(source, probe.threads, kRestoreSeconds, seed(1), known);
  }
  rates.warm = rate_of(source, probe.threads, probe.seconds_each, seed(0), known);
  rates.warm_twice = rate_of(source, 2 * probe.threads, probe.seconds_each, seed(0), known);
  return rates;
}

namespace {

// The number of samples whose files are checked to have left the page cache.
constexpr SampleId kLooked = 8;
// A page that the kernel writes or reclaims at the moment stays for a short time.
constexpr int kTries = 50;
constexpr auto kEvictPause = std::chrono::milliseconds(10);

bool stays(const Source& files, SampleId id) {
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  for (int i = 0; i < kTries; ++i) {
    if (i > 0) std::this_thread::sleep_for(kEvictPause);
    const bool is_there = files.storage().read_cached(id, buffer, bytes);
    // Checking a file makes the kernel read ahead, so the file is evicted once more.
    evict_from_cache(files, id);
    if (!is_there) return false;
  }
  return true;
}

}  // namespace

ColdSource::ColdSource(const Source& files) : ForwardingSource(files) {
  if (!files.pictures().empty()) {
    throw std::invalid_argument(
        "--cold: only the samples' own files can be dropped from the page "
        "cache, and --picture-from names others");
  }
  int64_t evicted = 0;
  for (SampleId id = 0; id < files.size(); ++id) evicted += evict_from_cache(files, id);
  if (evicted == 0) {
    throw std::invalid_argument(
        "--cold: " + files.root() +
        ": its samples are not files, so they cannot be dropped from the page cache");
  }
  for (SampleId id = 0; id < std::min(kLooked, files.size()); ++id) {
    if (!stays(files, id)) continue;
    throw std::invalid_argument("--cold: " + files.root() + "/" + files.name(id) +
                                " stays in memory (a file system in memory, or somebody maps it): "
                                "storage cannot be measured cold here");
  }
}

ReadStatus ColdSource::read(SampleId id, std::vector<uint8_t>& buffer,
                            std::span<const uint8_t>& bytes) const {
  evict_from_cache(source_, id);
  return source_.read(id, buffer, bytes);
}

bool ColdSource::read_pieces(SampleId id, const FileStamp& stamp, std::span<const BytePiece> pieces,
                             MayWait may_wait) const {
  if (may_wait == MayWait::no) return false;
  evict_from_cache(source_, id);
  return source_.storage().read_pieces(id, stamp, pieces, may_wait);
}

}  // namespace stoker
