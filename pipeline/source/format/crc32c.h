// CRC-32C, the checksum of TFRecord files: polynomial 0x1EDC6F41 with reflected bits, as RFC 3720
// (section 12.1, examples in appendix B.4) has it. Threads: any.
#pragma once

#include <cstdint>
#include <span>

namespace stoker {

// Uses the CPU's own instructions (SSE4.2, ARMv8 CRC) where it has them, else a table.
uint32_t crc32c(std::span<const uint8_t> bytes);

bool has_crc32c_instructions();
// Returns the same, without these instructions.
uint32_t crc32c_by_table(std::span<const uint8_t> bytes);

}  // namespace stoker
