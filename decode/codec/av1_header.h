// The headers of a coded AV1 picture ("AV1 Bitstream & Decoding Process Specification", sections
// 5.3 to 5.9): how large it is, and that it is one picture and nothing else. Internal to the
// codecs.
//
// A decoder keeps frames that are not shown for those after them, eight at a time, and a frame may
// have another size than its sequence. So few bytes could take much memory, or give pixels that
// have to be scaled. Accepted is what encoders make of a still picture: one sequence header, one
// key frame of that size, shown, without layers.
//
// Threads: any. Errors: a status; byte offsets count from the first byte of `data`. Memory: none.
#pragma once

#include <cstdint>
#include <span>

#include "decode/decode_status.h"
#include "decode/image.h"

namespace stoker {

DecodeStatus read_av1_header(std::span<const uint8_t> data, Size& size);

}  // namespace stoker
