// Reads the headers of tars in a store before their scans come to them. A scan goes from header to
// header, and each is a round to the store. So a tar is cut into parts, and prefetchers look for
// the first header in each, by its magic and its checksum at every 512th byte, and go on from
// there. A scan takes the bytes that they read instead of asking the store, and reads what it would
// read without them: a prefetcher that was misled costs requests, and changes nothing.
//
//   parts of all tars, in order:   | scan passed | scan is here | prefetched ... | not yet taken |
//
// A scan waits for a prefetcher in its own part only. A prefetcher takes a part only while there is
// memory for all of it, and then never waits for a scan.
//
// Owner: build_index(). Threads: read() and end() of a tar by its scan; stop() from any. Errors: of
// the scans' own reads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/source/format/blob_reader.h"
#include "staging/mutex.h"

namespace stoker {

struct PrefetchedTar {
  std::string name;  // for messages
  int64_t bytes = 0;
  ReadAt read_at;
};

class TarPrefetchers {
 public:
  struct Options {
    int prefetchers = 64;
    int64_t part_bytes = 4 << 20;      // a multiple of 512
    int64_t memory_bytes = 256 << 20;  // at most, for what was read and no scan has passed
  };

  TarPrefetchers(std::vector<PrefetchedTar> tars, const Options& options);
  ~TarPrefetchers();
  TarPrefetchers(const TarPrefetchers&) = delete;
  TarPrefetchers& operator=(const TarPrefetchers&) = delete;

  // As ReadAt, for the scan of a tar.
  int64_t read(size_t tar, int64_t offset, int64_t least, std::span<uint8_t> out);
  // The scan of a tar has ended.
  void end(size_t tar);
  // No part is taken any more, and no scan waits.
  void stop();

 private:
  struct Position {
    size_t tar = 0;
    int64_t part = 0;
    auto operator<=>(const Position&) const = default;
  };
  // A part that a prefetcher has taken.
  struct Part {
    bool dropped = false;  // no scan will come by
    bool done = false;
    int64_t position = 0;  // all that the scan will read before this offset is here
    std::map<int64_t, std::vector<uint8_t>> pieces;  // by offset
    int64_t piece_bytes = 0;
    CondVar changed;
  };
  // Events in a tar.
  struct Progress {
    int64_t scanned = -1;              // the part in which the scan is; prefetchers take later ones
    int64_t found = 0, not_found = 0;  // searches for a first header
    bool is_worth_it() const { return not_found < 2 || 4 * not_found < found + not_found; }
  };

  void work();
  // Waits for memory. Returns null if there are no more parts.
  std::shared_ptr<Part> take(Position& position);
  bool skip_to_a_part() REQUIRES(mutex_);
  void prefetch(const Position& position, Part& part);
  int64_t find_header(const Position& position, Part& part);
  int64_t read_for(const Position& position, Part& part, int64_t offset, int64_t least,
                   std::span<uint8_t> out);
  void check_wanted(const Part& part);
  void set_position(Part& part, int64_t offset);
  void finish(Part& part);
  void pass(size_t tar, int64_t part) REQUIRES(mutex_);
  static int64_t copy(const Part& part, int64_t offset, std::span<uint8_t> out);

  const std::vector<PrefetchedTar> tars_;
  const Options options_;
  Mutex mutex_;
  CondVar room_;
  std::map<Position, std::shared_ptr<Part>> parts_ GUARDED_BY(mutex_);
  std::vector<Progress> progress_ GUARDED_BY(mutex_);  // of each tar
  Position next_ GUARDED_BY(mutex_);                   // the first that may not have been taken
  int64_t memory_ GUARDED_BY(mutex_) = 0;  // of pieces, and of what prefetchers may still read
  bool stopped_ GUARDED_BY(mutex_) = false;
  std::vector<std::jthread> threads_;
};

}  // namespace stoker
