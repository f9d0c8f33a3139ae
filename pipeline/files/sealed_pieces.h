// A folder of this machine that keeps pieces of bytes at fixed places, each with a seal, for any
// number of processes at a time. There is no table of places and no lock: whoever uses it computes
// where a piece lies.
//
//   FOLDER/about     what the pieces are, as text
//   FOLDER/samples   the bytes of all pieces; sparse until all have come
//   FOLDER/seals     for each piece the XXH3 of its bytes, 0: not there yet
//
// A seal is written behind its piece's bytes, and every read compares it: what a kill, a crash or
// a damaged disk left is not there, and never wrong bytes. A disk that is full (or a quota, a limit
// on files, a folder that may only be read) ends the keeping, not the reading.
//
// Owner: a cache. Threads: every method from any, but for cut(). Errors: the constructor throws
// std::runtime_error with the path and the reason.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "pipeline/files/read_piece.h"
#include "staging/mutex.h"

namespace stoker {

class SealedPieces {
 public:
  // Makes the folder if it is not there. One whose `about` says something else, or is damaged,
  // begins anew.
  SealedPieces(const std::string& folder, const std::string& about);
  SealedPieces(const SealedPieces&) = delete;
  SealedPieces& operator=(const SealedPieces&) = delete;

  // Forgets the pieces from number `pieces` on, and what lies behind the first `bytes` bytes.
  void cut(int64_t pieces, int64_t bytes);
  // Sets `seals` to those of the pieces from number `first` on.
  void read_seals(int64_t first, std::span<uint64_t> seals) const;

  // Returns the seal of piece `number`; 0: it is not there, or not in memory with MayWait::no. 8
  // bytes of a file of which hardly a page ever leaves the memory.
  uint64_t seal(int64_t number, MayWait may_wait) const;
  // Fills `out` with the piece at `offset`, whose seal() is `seal`. Returns false if it is not in
  // memory with MayWait::no, or is damaged; that is then no longer there.
  bool read(int64_t number, uint64_t seal, int64_t offset, MayWait may_wait,
            std::span<uint8_t> out) const;
  // Writes a piece, and its seal behind it. May wait for the disk. Returns whether it is there.
  bool keep(int64_t number, int64_t offset, std::span<const uint8_t> bytes);

  bool keeps() const { return keeps_; }  // keep() would try
  const std::string& folder() const { return folder_; }
  std::string problem() const;  // why nothing is kept any more; "" if it is

 private:
  void open_file(const char* name, std::optional<Descriptor>& file);
  void take_over(const std::string& about);
  static bool get(const Descriptor& file, int64_t offset, std::span<uint8_t> out, MayWait may_wait);
  // Returns false, and nothing is kept any more, if that fails.
  bool put(const Descriptor& file, int64_t offset, std::span<const uint8_t> bytes) const;
  void stop_keeping(const char* what, int error) const;

  const std::string folder_;
  const int64_t largest_file_;  // that this process may write
  std::optional<Descriptor> bytes_file_, seals_file_;
  mutable std::atomic<bool> keeps_ = true;
  mutable Mutex mutex_;
  mutable std::string problem_ GUARDED_BY(mutex_);
};

}  // namespace stoker
