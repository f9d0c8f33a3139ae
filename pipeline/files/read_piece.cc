#include "pipeline/files/read_piece.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace stoker {

Descriptor::~Descriptor() {
  if (value_ >= 0) close(value_);
}

int64_t read_piece(int descriptor, int64_t offset, std::span<uint8_t> out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t count = pread(descriptor, out.data() + done, out.size() - done,
                                offset + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return static_cast<int64_t>(done);
}

// preadv2(2) with RWF_NOWAIT fails instead of waiting for storage.
bool read_piece_cached(int descriptor, int64_t offset, std::span<uint8_t> out) {
  const iovec whole{out.data(), out.size()};
  return preadv2(descriptor, &whole, 1, offset, RWF_NOWAIT) == std::ssize(out);
}

}  // namespace stoker
