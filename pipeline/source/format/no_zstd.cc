#include "pipeline/source/format/unpack.h"

namespace stoker {

bool has_zstd() { return false; }

std::string unpack_zstd(std::span<const uint8_t>, std::span<uint8_t>, std::vector<int64_t>*) {
  return "packed with Zstandard, and this build has no libzstd";
}

}  // namespace stoker
