// Unpacks the part of a compressed page that a sample needs.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "pipeline/source/format/sample_sink.h"

namespace stoker {

// Returns false if this build has no library for it (snappy is always there).
bool can_unpack(BlobStorage storage);

// Fills `out` with the first out.size() bytes that come out of `packed`. Returns "" or what is
// wrong with the bytes; nothing outside of the two spans is read or written, whatever they hold.
// `storage` is snappy or zstd. Threads: any.
std::string unpack(BlobStorage storage, std::span<const uint8_t> packed, std::span<uint8_t> out);

}  // namespace stoker
