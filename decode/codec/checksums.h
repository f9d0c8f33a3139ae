// The checksums of PNG and zlib. Internal to the codecs. Threads: any.
#pragma once

#include <cstdint>
#include <span>

namespace stoker {

// CRC-32 of RFC 1952 (PNG's chunks).
uint32_t crc32(std::span<const uint8_t> bytes);

// Adler-32 of RFC 1950, continued from `sum`; 1 begins one.
uint32_t adler32(uint32_t sum, std::span<const uint8_t> bytes);

}  // namespace stoker
