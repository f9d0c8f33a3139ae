#include "pipeline/files/read_piece.h"

#include <linux/magic.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace stoker {
namespace {

// The device of the tmpfs that was read last. To ask each time would take as long as reading a
// small sample.
std::atomic<uint64_t> memory_device{0};

bool is_in_memory(int descriptor) {
  struct statfs status;
  return fstatfs(descriptor, &status) == 0 && status.f_type == TMPFS_MAGIC;
}

}  // namespace

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

// preadv2(2) with RWF_NOWAIT fails instead of waiting for storage. tmpfs does not know the flag,
// and has nothing to wait for but swap.
bool read_piece_cached(int descriptor, uint64_t device, int64_t offset, std::span<uint8_t> out) {
  if (device == 0 || device != memory_device.load(std::memory_order_relaxed)) {
    const iovec whole{out.data(), out.size()};
    const ssize_t count = preadv2(descriptor, &whole, 1, offset, RWF_NOWAIT);
    if (count >= 0 || errno != EOPNOTSUPP) return count == std::ssize(out);
    if (!is_in_memory(descriptor)) return false;
    if (device != 0) memory_device.store(device, std::memory_order_relaxed);
  }
  return read_piece(descriptor, offset, out) == std::ssize(out);
}

}  // namespace stoker
