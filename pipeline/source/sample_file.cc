#include "pipeline/source/sample_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "pipeline/files/file_buffer.h"
#include "pipeline/source/file_stamp.h"

#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#endif

namespace stoker {
namespace {

// Without O_NONBLOCK, a pipe that has replaced a file would block the reader.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

}  // namespace

int open_sample_file(int folder, const char* path) { return openat(folder, path, kOpenFlags); }

// openat2(2) with RESOLVE_CACHED, Linux 5.12. It fails if the kernel, now or at build time, is
// older, or if a container forbids the call.
int open_sample_file_cached([[maybe_unused]] int folder, [[maybe_unused]] const char* path) {
#ifdef RESOLVE_CACHED
  const open_how how{.flags = kOpenFlags, .mode = 0, .resolve = RESOLVE_CACHED};
  return static_cast<int>(syscall(SYS_openat2, folder, path, &how, sizeof how));
#else
  return -1;
#endif
}

ReadStatus system_failure(const char* what) {
  return {false, std::string(what) + ": " + std::strerror(errno)};
}

ReadStatus read_sample_file(int descriptor, std::vector<uint8_t>& buffer,
                            std::span<const uint8_t>& bytes) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return system_failure("stat");
  if (!S_ISREG(status.st_mode)) return {false, "not a regular file"};
  if (status.st_size > kMaxSampleBytes) {
    return {false, "the file has " + std::to_string(status.st_size) + " bytes, the limit is " +
                       std::to_string(kMaxSampleBytes)};
  }
  const auto size = static_cast<size_t>(status.st_size);
  grow_file_buffer(buffer, size);  // never shrinks: growing again would clear it
  const int64_t count = read_piece(descriptor, 0, {buffer.data(), size});
  if (count < 0) return system_failure("read");
  // A file that was cut short since the stat has fewer bytes; the decoder checks what is there.
  bytes = {buffer.data(), static_cast<size_t>(count)};
  return {};
}

bool read_sample_file_cached(int descriptor, std::vector<uint8_t>& buffer,
                             std::span<const uint8_t>& bytes) {
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size > kMaxSampleBytes) {
    return false;
  }
  const auto size = static_cast<size_t>(status.st_size);
  grow_file_buffer(buffer, size);
  if (!read_piece_cached(descriptor, status.st_dev, 0, {buffer.data(), size})) return false;
  bytes = {buffer.data(), size};
  return true;
}

FileStamp sample_file_stamp(int folder, const char* path) {
  struct stat status;
  if (fstatat(folder, path, &status, 0) != 0 || !S_ISREG(status.st_mode)) return {};
  return file_stamp_of(status);
}

bool read_file_pieces(int folder, const char* path, const FileStamp& stamp,
                      std::span<const BytePiece> pieces, MayWait may_wait) {
  const bool waits = may_wait == MayWait::yes;
  const Descriptor file(waits ? open_sample_file(folder, path)
                              : open_sample_file_cached(folder, path));
  struct stat status;
  if (file.get() < 0 || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      file_stamp_of(status) != stamp) {
    return false;
  }
  // Else the kernel would read ahead, and so all of a file of usual size, even for a read that does
  // not wait. Advice may fail without harm.
  posix_fadvise(file.get(), 0, 0, POSIX_FADV_RANDOM);
  return std::all_of(pieces.begin(), pieces.end(), [&](const BytePiece& piece) {
    return waits ? read_piece(file.get(), piece.offset, piece.out) == std::ssize(piece.out)
                 : read_piece_cached(file.get(), status.st_dev, piece.offset, piece.out);
  });
}

}  // namespace stoker
