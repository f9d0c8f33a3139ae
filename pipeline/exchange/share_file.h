// The shared memory of processes that share rows: a file in /dev/shm with a head, a table of the
// members, and bytes for whoever uses it. Every Loader with this share is a member; they are peers.
//
//   head | members | words of blocks | rows of blocks
//
// Whoever comes first makes the file, with all its memory (posix_fallocate); the last one to leave
// removes it. The table is changed under flock(), which the kernel releases when a process dies. A
// file without a living member was left over by a kill: the next one begins anew, with another file
// of that name. The file is its owner's alone (0600), and one of a PID namespace.
//
// Owner: SharedRows. Threads: any. Errors: the constructor throws std::runtime_error with name and
// numbers: the members feed other rows, there is no memory, there are too many members, the file
// is another user's or cannot be used.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "pipeline/exchange/process_mark.h"

namespace stoker {

class ShareFile {
 public:
  static constexpr int kMembers = 64;
  static constexpr uint32_t kSerials = 1 << 12;  // serials are 1 to this - 1

  struct Options {
    std::string name;
    std::string folder = "/dev/shm";
    uint64_t fingerprint = 0;  // of what members must have in common
    // The same in words, a line "what: value" each: differences are quoted from it.
    std::string facts;
    int steps = 1;         // by which the error proposes a smaller number
    size_t bytes = 0;      // behind the table
    int64_t position = 0;  // where this member begins
  };

  explicit ShareFile(const Options& options);
  ~ShareFile();  // leaves; in a forked child of the member's process it does nothing
  ShareFile(const ShareFile&) = delete;
  ShareFile& operator=(const ShareFile&) = delete;

  static size_t head_bytes();  // of head and table

  std::byte* bytes() const { return bytes_; }  // zero in a new file
  uint32_t serial() const { return serial_; }  // of this member; another one's while both live: no
  void set_position(int64_t step);
  // Returns whether the member's process runs: it has neither ended nor been stopped. It may have
  // been found out 50 ms ago.
  bool runs(uint32_t serial) const;
  // Returns whether another member that runs stands at a step from `first` to `last`.
  bool has_member(int64_t first, int64_t last) const;

  // Returns the serial of one of the members that run and stand at a step from `first` to `last`,
  // or of this one if there are none: always the same one for the same number and members.
  uint32_t member_for(uint64_t number, int64_t first, int64_t last) const;

  // Tells all members that something has changed.
  void notify();
  uint32_t changes() const;
  // Waits until changes() is no longer `seen`, for at most `ms` milliseconds.
  void wait(uint32_t seen, int ms);

 private:
  struct Head;
  struct Member;

  bool try_join(const Options& options);
  void map(int file);
  void unmap();
  void begin(const Options& options);
  int living_member() const;
  void check(const Options& options, int living) const;
  void take_slot(int64_t position);
  Life life_in(int slot) const;

  const pid_t process_;
  const std::string path_;
  uint64_t inode_ = 0;
  size_t mapped_bytes_ = 0;
  Head* head_ = nullptr;
  Member* members_ = nullptr;
  std::byte* bytes_ = nullptr;
  uint32_t serial_ = 0;
  int slot_ = 0;
  // By slot: what was found out about which member's process, and when.
  mutable std::array<std::atomic<int64_t>, kMembers> found_{};
};

}  // namespace stoker
