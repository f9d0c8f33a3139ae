// Unpacks the part of a compressed page that a sample needs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pipeline/source/format/sample_sink.h"

namespace stoker {

// Returns false if this build has no library for it (snappy is always there).
bool can_unpack(BlobStorage storage);

// Fills `out` with the first out.size() bytes that come out of `packed`. Returns "" or what is
// wrong with the bytes; nothing outside of the two spans is read or written, whatever they hold.
// `storage` is snappy or zstd. Threads: any.
std::string unpack(BlobStorage storage, std::span<const uint8_t> packed, std::span<uint8_t> out);

// Zstandard through libzstd; without it (STOKER_ZSTD=OFF, or not found) functions that refuse.
// Threads: any; each keeps a context of its own.

bool has_zstd();

// Fills `out` with what comes out first of the frame that `packed` begins with. Returns "" or what
// is wrong with it. `needed`: if not null, gets how many of the packed bytes are needed for the
// first kZstdStep unpacked bytes, for the first two times as many, and so on.
inline constexpr int64_t kZstdStep = 1 << 18;
std::string unpack_zstd(std::span<const uint8_t> packed, std::span<uint8_t> out,
                        std::vector<int64_t>* needed);

}  // namespace stoker
