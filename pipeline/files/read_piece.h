// Reads pieces of open files. Threads: any. Errors: errno.
#pragma once

#include <cstdint>
#include <span>

namespace stoker {

enum class MayWait : bool { no, yes };  // for storage

// A file descriptor that closes itself. Owner: the code that opened it.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  const int value_;
};

// Fills `out` from `offset` on. Returns how many bytes there were, -1 with errno on failure.
int64_t read_piece(int descriptor, int64_t offset, std::span<uint8_t> out);
// Returns true if all of `out` was filled from memory. `device`: the file's st_dev, which saves two
// calls for a file in tmpfs; 0 if it is not known.
bool read_piece_cached(int descriptor, uint64_t device, int64_t offset, std::span<uint8_t> out);

}  // namespace stoker
