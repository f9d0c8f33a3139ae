#include "pipeline/files/sealed_pieces.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/files/durable_file.h"

namespace stoker {
namespace {

constexpr int64_t kSealBytes = sizeof(uint64_t);

// Never 0, which stands for "not there".
uint64_t seal_of_bytes(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return std::max<uint64_t>(text_digest(text), 1);
}

template <typename T>
std::span<uint8_t> bytes_in(std::span<T> values) {
  return {reinterpret_cast<uint8_t*>(values.data()), values.size_bytes()};
}

bool is_full(int error) { return error == ENOSPC || error == EDQUOT; }

int64_t largest_file() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur > INT64_MAX) return INT64_MAX;
  return static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace

SealedPieces::SealedPieces(const std::string& folder, const std::string& about)
    : folder_(folder), largest_file_(largest_file()) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error && !is_full(error.value())) {
    throw std::runtime_error("cache: " + folder_ + ": " + error.message());
  }
  if (error) stop_keeping("make", error.value());
  open_file("samples", bytes_file_);
  open_file("seals", seals_file_);
  take_over(about);
}

void SealedPieces::open_file(const char* name, std::optional<Descriptor>& file) {
  const std::string path = folder_ + "/" + name;
  file.emplace(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (file->get() < 0) {
    const int error = errno;
    file.emplace(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file->get() < 0 && !is_full(error)) {
      throw std::runtime_error("cache: " + path + ": " + std::strerror(error));
    }
    stop_keeping("write", error);
  }
  // Pieces are read in any order: what lies beside one is not read with it.
  posix_fadvise(file->get(), 0, 0, POSIX_FADV_RANDOM);
}

void SealedPieces::take_over(const std::string& about) {
  const std::string path = folder_ + "/about";
  std::error_code ignored;
  const bool is_there = std::filesystem::exists(path, ignored);
  if (is_there && read_whole_file(path) == about) return;
  if (is_there && !keeps_) throw std::runtime_error("cache: " + path + ": of other data");
  if (!keeps_) return;
  if (is_there && (ftruncate(seals_file_->get(), 0) != 0 || ftruncate(bytes_file_->get(), 0))) {
    throw std::runtime_error("cache: " + folder_ + ": " + std::strerror(errno));
  }
  try {
    ReplacedFile file(path, 0644);
    file.write_at(0, about);
    file.finish();
  } catch (const std::runtime_error& error) {
    const MutexLock lock(mutex_);
    keeps_ = false;
    problem_ = error.what();
  }
}

void SealedPieces::cut(int64_t pieces, int64_t bytes) {
  if (!keeps_) return;
  const auto shorten = [&](const Descriptor& file, int64_t most) {
    struct stat status;
    const bool is_longer = fstat(file.get(), &status) == 0 && status.st_size > most;
    if (is_longer && ftruncate(file.get(), most) != 0) stop_keeping("cut", errno);
  };
  shorten(*seals_file_, pieces * kSealBytes);
  shorten(*bytes_file_, bytes);
}

void SealedPieces::read_seals(int64_t first, std::span<uint64_t> seals) const {
  const int64_t bytes = read_piece(seals_file_->get(), first * kSealBytes, bytes_in(seals));
  const int64_t whole = std::max<int64_t>(bytes, 0) / kSealBytes;
  std::ranges::fill(seals.subspan(static_cast<size_t>(whole)), 0);
}

bool SealedPieces::get(const Descriptor& file, int64_t offset, std::span<uint8_t> out,
                       MayWait may_wait) {
  return may_wait == MayWait::yes ? read_piece(file.get(), offset, out) == std::ssize(out)
                                  : read_piece_cached(file.get(), 0, offset, out);
}

uint64_t SealedPieces::seal(int64_t number, MayWait may_wait) const {
  uint64_t seal = 0;
  const bool is_read =
      get(*seals_file_, number * kSealBytes, bytes_in(std::span(&seal, 1)), may_wait);
  return is_read ? seal : 0;
}

bool SealedPieces::read(int64_t number, uint64_t seal, int64_t offset, MayWait may_wait,
                        std::span<uint8_t> out) const {
  if (get(*bytes_file_, offset, out, may_wait) && seal_of_bytes(out) == seal) return true;
  if (may_wait == MayWait::yes && keeps_) {
    uint64_t none = 0;
    put(*seals_file_, number * kSealBytes, bytes_in(std::span(&none, 1)));
  }
  return false;
}

bool SealedPieces::keep(int64_t number, int64_t offset, std::span<const uint8_t> bytes) {
  uint64_t seal = seal_of_bytes(bytes);
  return put(*bytes_file_, offset, bytes) &&
         put(*seals_file_, number * kSealBytes, bytes_in(std::span(&seal, 1)));
}

// A write beyond the process's limit would be the end of the process (SIGXFSZ).
bool SealedPieces::put(const Descriptor& file, int64_t offset,
                       std::span<const uint8_t> bytes) const {
  if (offset > largest_file_ - std::ssize(bytes)) {
    stop_keeping("write", EFBIG);
    return false;
  }
  while (!bytes.empty()) {
    const ssize_t count = pwrite(file.get(), bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      stop_keeping("write", count < 0 ? errno : ENOSPC);
      return false;
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += count;
  }
  return true;
}

void SealedPieces::stop_keeping(const char* what, int error) const {
  const MutexLock lock(mutex_);
  keeps_ = false;
  if (problem_.empty()) problem_ = folder_ + ": " + what + ": " + std::strerror(error);
}

std::string SealedPieces::problem() const {
  const MutexLock lock(mutex_);
  return problem_;
}

}  // namespace stoker
