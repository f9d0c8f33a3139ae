#include "pipeline/files/digest.h"

#include <cinttypes>
#include <cstdio>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace stoker {

uint64_t pixel_digest(std::span<const uint8_t> pixels) {
  const uint64_t digest = XXH3_64bits(pixels.data(), pixels.size());
  return digest == 0 ? 1 : digest;
}

uint64_t text_digest(std::string_view text, uint64_t seed) {
  return seed == 0 ? XXH3_64bits(text.data(), text.size())
                   : XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

std::string hex64(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

Digest128 digest128(std::span<const uint64_t> words) {
  const XXH128_hash_t hash = XXH3_128bits(words.data(), words.size_bytes());
  return {hash.low64, hash.high64};
}

}  // namespace stoker
