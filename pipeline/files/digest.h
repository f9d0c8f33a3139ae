// Digests (XXH3): the same bytes give the same digest on every machine. Not cryptographic: they
// find accidents, not forgery. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stoker {

struct Digest128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Digest128&) const = default;
};

// Returns the digest of a row's pixels; never 0, which means "not taken".
uint64_t pixel_digest(std::span<const uint8_t> pixels);
uint64_t text_digest(std::string_view text, uint64_t seed = 0);
std::string hex64(uint64_t value);  // 16 digits
Digest128 digest128(std::span<const uint64_t> words);

}  // namespace stoker
