#include "pipeline/source/blob/sample_cache.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "pipeline/digest.h"
#include "pipeline/durable_file.h"
#include "pipeline/printable_name.h"

namespace stoker {
namespace {

// Both belong to the form of the files: another key is another order.
constexpr int kForm = 1;
constexpr PermutationKey kOrder{0x243F6A8885A308D3, 0x13198A2E03707345};

// A place is noted for each so many positions, and the lengths between are added up: half a byte of
// memory for each sample.
constexpr int64_t kStride = 16;
constexpr int64_t kSealBytes = sizeof(uint64_t);
constexpr int64_t kSealsAtOnce = 8 << 10;

std::string_view text_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Never 0, which stands for "not there".
uint64_t seal_of(std::span<const uint8_t> bytes) {
  return std::max<uint64_t>(text_digest(text_of(bytes)), 1);
}

template <typename T>
std::span<uint8_t> bytes_in(std::span<T> values) {
  return {reinterpret_cast<uint8_t*>(values.data()), values.size_bytes()};
}

bool is_full(int error) { return error == ENOSPC || error == EDQUOT; }

// What tells the data set from others, and from its own earlier states.
struct Identity {
  uint64_t digest = 0;
  int64_t bytes = 0;
};

Identity identify(const StoredSamples& samples) {
  Identity identity;
  Digest128 digest{text_digest(samples.root), kForm};
  std::shared_ptr<const StoredObject> last;
  uint64_t object = 0;
  for (SampleId id = 0; id < samples.count; ++id) {
    const StoredPlaceOfSample place = samples.locate(id);
    if (place.object && place.object != last) {
      last = place.object;
      if (last->version == kUnversioned) {
        throw std::invalid_argument(
            "cache: " + samples.root + ": the server gives no version of " + last->key +
            " (ETag or Last-Modified), so that a cache could not tell when it changes");
      }
      object = text_digest(last->key + '\0' + std::to_string(last->bytes) + '\0' + last->version);
    }
    const uint64_t words[] = {digest.low, digest.high, place.object ? object : 0,
                              static_cast<uint64_t>(place.offset),
                              static_cast<uint64_t>(place.length)};
    digest = digest128(words);
    identity.bytes += place.length;
  }
  identity.digest = digest.low;
  return identity;
}

int64_t largest_file() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur > INT64_MAX) return INT64_MAX;
  return static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace

std::unique_ptr<SampleCache> SampleCache::open(const StoreOptions& options,
                                               const StoredSamples& samples) {
  if (options.cache.empty() && options.cache_bytes == 0) return nullptr;
  if (options.cache.empty()) throw std::invalid_argument("cache_size needs cache, a folder");
  if (options.cache_bytes <= 0) {
    throw std::invalid_argument("cache needs cache_size, in bytes, more than 0");
  }
  if (is_store_address(options.cache)) {
    throw std::invalid_argument("cache: " + options.cache + " is no folder of this machine");
  }
  if (samples.count == 0) return nullptr;
  return std::unique_ptr<SampleCache>(new SampleCache(options, samples));
}

SampleCache::SampleCache(const StoreOptions& options, const StoredSamples& samples)
    : samples_(samples), order_(samples.count, kOrder), largest_file_(largest_file()) {
  const Identity identity = identify(samples);
  sizes_.samples = samples.count;
  sizes_.bytes = identity.bytes;
  folder_ = options.cache + "/" + hex64(identity.digest);
  sizes_.cache = folder_;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error && !is_full(error.value())) {
    throw std::runtime_error("cache: " + folder_ + ": " + error.message());
  }
  if (error) stop_keeping("make", error.value());
  open_file("samples", bytes_file_);
  open_file("seals", seals_file_);
  take_over("stoker: samples of a store, form " + std::to_string(kForm) + "\nof " +
            printable_name(samples.root) + "\n" + std::to_string(samples.count) + " samples of " +
            std::to_string(identity.bytes) + " bytes\ndigest " + hex64(identity.digest) + "\n");
  place_samples(options.cache_bytes);
  cut();
  sizes_.problem = problem();
}

void SampleCache::open_file(const char* name, std::optional<Descriptor>& file) {
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
  // Samples are read in any order: what lies beside one is not read with it.
  posix_fadvise(file->get(), 0, 0, POSIX_FADV_RANDOM);
}

// A folder whose `about` says something else, or is damaged, begins anew.
void SampleCache::take_over(const std::string& about) {
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

// Takes samples in the fixed order until one does not fit.
void SampleCache::place_samples(int64_t most_bytes) {
  std::vector<uint64_t> seals(kSealsAtOnce);
  int64_t end = 0, position = 0;
  for (; position < samples_.count; ++position) {
    const int64_t length = samples_.bytes_of(order_.at(position));
    if (length > most_bytes - end) break;
    if (position % kStride == 0) places_.push_back(end);
    const int64_t in_seals = position % kSealsAtOnce;
    if (in_seals == 0) {
      std::ranges::fill(seals, 0);
      read_piece(seals_file_->get(), position * kSealBytes, bytes_in(std::span(seals)));
    }
    if (seals[static_cast<size_t>(in_seals)] != 0) sizes_.kept_bytes += length;
    end += length;
  }
  sizes_.cache_samples = position;
  sizes_.cache_bytes = end;
}

// What a larger cache had behind the places of this one goes: the size is what the disk shall hold.
void SampleCache::cut() {
  if (!keeps_) return;
  const auto shorten = [&](const Descriptor& file, int64_t most) {
    struct stat status;
    const bool is_longer = fstat(file.get(), &status) == 0 && status.st_size > most;
    if (is_longer && ftruncate(file.get(), most) != 0) stop_keeping("cut", errno);
  };
  shorten(*seals_file_, sizes_.cache_samples * kSealBytes);
  shorten(*bytes_file_, sizes_.cache_bytes);
}

int64_t SampleCache::place_of(int64_t position) const {
  int64_t place = places_[static_cast<size_t>(position / kStride)];
  for (int64_t before = position / kStride * kStride; before < position; ++before) {
    place += samples_.bytes_of(order_.at(before));
  }
  return place;
}

bool SampleCache::get(const Descriptor& file, int64_t offset, std::span<uint8_t> out,
                      MayWait may_wait) {
  return may_wait == MayWait::yes ? read_piece(file.get(), offset, out) == std::ssize(out)
                                  : read_piece_cached(file.get(), offset, out);
}

uint64_t SampleCache::seal_at(int64_t position, MayWait may_wait) const {
  uint64_t seal = 0;
  const bool is_read =
      get(*seals_file_, position * kSealBytes, bytes_in(std::span(&seal, 1)), may_wait);
  return is_read ? seal : 0;
}

bool SampleCache::holds(SampleId id) const {
  const int64_t position = order_.position_of(id);
  return position < sizes_.cache_samples && seal_at(position, MayWait::yes) != 0;
}

bool SampleCache::wants(SampleId id) const {
  return keeps_ && order_.position_of(id) < sizes_.cache_samples && !holds(id);
}

std::span<const uint8_t> SampleCache::read(SampleId id, MayWait may_wait,
                                           std::unique_ptr<uint8_t[]>& buffer) const {
  const int64_t position = order_.position_of(id);
  if (position >= sizes_.cache_samples) return {};
  const uint64_t seal = seal_at(position, may_wait);
  if (seal == 0) return {};
  const auto length = static_cast<size_t>(samples_.bytes_of(id));
  buffer = std::make_unique_for_overwrite<uint8_t[]>(length);
  const std::span bytes(buffer.get(), length);
  if (get(*bytes_file_, place_of(position), bytes, may_wait) && seal_of(bytes) == seal) {
    return bytes;
  }
  if (may_wait == MayWait::yes && keeps_) {
    uint64_t none = 0;
    put(*seals_file_, position * kSealBytes, bytes_in(std::span(&none, 1)));
  }
  return {};
}

void SampleCache::keep(SampleId id, std::span<const uint8_t> bytes) {
  if (!wants(id) || std::ssize(bytes) != samples_.bytes_of(id)) return;
  const int64_t position = order_.position_of(id);
  uint64_t seal = seal_of(bytes);
  if (!put(*bytes_file_, place_of(position), bytes)) return;
  if (!put(*seals_file_, position * kSealBytes, bytes_in(std::span(&seal, 1)))) return;
  kept_bytes_ += std::ssize(bytes);
}

// A write beyond the process's limit would be the end of the process (SIGXFSZ).
bool SampleCache::put(const Descriptor& file, int64_t offset,
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

void SampleCache::stop_keeping(const char* what, int error) const {
  const MutexLock lock(mutex_);
  keeps_ = false;
  if (problem_.empty()) problem_ = folder_ + ": " + what + ": " + std::strerror(error);
}

std::string SampleCache::problem() const {
  const MutexLock lock(mutex_);
  return problem_;
}

int64_t SampleCache::memory_bytes() const {
  return static_cast<int64_t>(places_.capacity() * sizeof(places_[0]));
}

}  // namespace stoker
