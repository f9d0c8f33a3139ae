#include "pipeline/source/blob/sample_cache.h"

#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/files/printable_name.h"

namespace stoker {
namespace {

// Both belong to the form of the files: another key is another order.
constexpr int kSampleCacheForm = 1;
constexpr PermutationKey kSampleCacheOrder{0x243F6A8885A308D3, 0x13198A2E03707345};

// A place is noted for each so many positions, and the lengths between are added up: half a byte of
// memory for each sample.
constexpr int64_t kNotedStride = 16;
constexpr int64_t kSampleSealsAtOnce = 8 << 10;

}  // namespace

// Tells the data set from others, and from its own earlier states.
struct SampleCache::Identity {
  uint64_t digest = 0;
  int64_t bytes = 0;
};

SampleCache::Identity SampleCache::identify(const StoredSamples& samples) {
  Identity identity;
  Digest128 digest{text_digest(samples.root + samples.queries), kSampleCacheForm};
  std::shared_ptr<const StoredObject> last;
  uint64_t object = 0;
  for (SampleId id = 0; id < samples.count; ++id) {
    const SampleAddress address = samples.locate(id);
    if (address.object && address.object != last) {
      last = address.object;
      if (last->version == kUnversioned) {
        throw std::invalid_argument(
            "cache: " + samples.root + ": the server gives no version of " + last->key +
            " (ETag or Last-Modified), so that a cache could not tell when it changes");
      }
      object = text_digest(last->key + '\0' + std::to_string(last->bytes) + '\0' + last->version);
    }
    const uint64_t words[] = {digest.low, digest.high, address.object ? object : 0,
                              static_cast<uint64_t>(address.offset),
                              static_cast<uint64_t>(address.length)};
    digest = digest128(words);
    identity.bytes += address.length;
  }
  identity.digest = digest.low;
  return identity;
}

std::string SampleCache::about(const StoredSamples& samples, const Identity& identity) {
  return "stoker: samples of a store, form " + std::to_string(kSampleCacheForm) + "\nof " +
         printable_name(samples.root) + "\n" + std::to_string(samples.count) + " samples of " +
         std::to_string(identity.bytes) + " bytes\ndigest " + hex64(identity.digest) + "\n";
}

std::unique_ptr<SampleCache> SampleCache::open(const StoreOptions& options,
                                               const StoredSamples& samples) {
  if (options.cache.empty() && options.cache_bytes == 0) return nullptr;
  if (options.cache.empty()) throw std::invalid_argument("cache_size needs cache, a folder");
  if (options.cache_bytes <= 0) {
    throw std::invalid_argument("cache needs cache_size, in bytes, more than 0");
  }
  if (is_store_address(options.cache)) {
    throw std::invalid_argument("cache: " + shown_path(options.cache) +
                                " is no folder of this machine");
  }
  if (samples.count == 0) return nullptr;
  return std::unique_ptr<SampleCache>(new SampleCache(options, samples, identify(samples)));
}

SampleCache::SampleCache(const StoreOptions& options, const StoredSamples& samples,
                         const Identity& identity)
    : samples_(samples),
      order_(samples.count, kSampleCacheOrder),
      files_(options.cache + "/" + hex64(identity.digest), about(samples, identity)) {
  sizes_.samples = samples.count;
  sizes_.bytes = identity.bytes;
  sizes_.cache = folder();
  place_samples(options.cache_bytes);
  // The rest of a larger cache goes: the size is what the disk shall hold.
  files_.cut(sizes_.cache_samples, sizes_.cache_bytes);
  sizes_.problem = problem();
}

// Takes samples in the fixed order until one does not fit.
void SampleCache::place_samples(int64_t most_bytes) {
  std::vector<uint64_t> seals(kSampleSealsAtOnce);
  int64_t end = 0, position = 0;
  for (; position < samples_.count; ++position) {
    const int64_t length = samples_.bytes_of(order_.at(position));
    if (length > most_bytes - end) break;
    if (position % kNotedStride == 0) places_.push_back(end);
    const int64_t in_seals = position % kSampleSealsAtOnce;
    if (in_seals == 0) files_.read_seals(position, seals);
    if (seals[static_cast<size_t>(in_seals)] != 0) sizes_.kept_bytes += length;
    end += length;
  }
  sizes_.cache_samples = position;
  sizes_.cache_bytes = end;
}

int64_t SampleCache::offset_of(int64_t position) const {
  int64_t place = places_[static_cast<size_t>(position / kNotedStride)];
  for (int64_t before = position / kNotedStride * kNotedStride; before < position; ++before) {
    place += samples_.bytes_of(order_.at(before));
  }
  return place;
}

bool SampleCache::holds(SampleId id) const {
  const int64_t position = order_.position_of(id);
  return position < sizes_.cache_samples && files_.seal(position, MayWait::yes) != 0;
}

bool SampleCache::wants(SampleId id) const {
  return files_.keeps() && order_.position_of(id) < sizes_.cache_samples && !holds(id);
}

std::span<const uint8_t> SampleCache::read(SampleId id, MayWait may_wait,
                                           std::unique_ptr<uint8_t[]>& buffer) const {
  const int64_t position = order_.position_of(id);
  if (position >= sizes_.cache_samples) return {};
  const uint64_t seal = files_.seal(position, may_wait);
  if (seal == 0) return {};
  const auto length = static_cast<size_t>(samples_.bytes_of(id));
  buffer = std::make_unique_for_overwrite<uint8_t[]>(length);
  const std::span bytes(buffer.get(), length);
  const bool is_read = files_.read(position, seal, offset_of(position), may_wait, bytes);
  return is_read ? bytes : std::span<const uint8_t>{};
}

void SampleCache::keep(SampleId id, std::span<const uint8_t> bytes) {
  if (!wants(id) || std::ssize(bytes) != samples_.bytes_of(id)) return;
  const int64_t position = order_.position_of(id);
  if (files_.keep(position, offset_of(position), bytes)) kept_bytes_ += std::ssize(bytes);
}

int64_t SampleCache::memory_bytes() const {
  return static_cast<int64_t>(places_.capacity() * sizeof(places_[0]));
}

}  // namespace stoker
