// One tensor of a .safetensors file (github.com/huggingface/safetensors, "Format"): the length of a
// header (u64), the header (JSON: for each tensor its dtype, shape and data_offsets), the numbers.
// A function of its arguments alone. Threads: any.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "pipeline/source/format/found_target.h"

namespace stoker {

// Sets `out` to the tensor with that name: booleans, integers, floats of 2, 4 and 8 bytes and
// bfloat16. Returns "" or what is wrong ("has no tensor 'x'; it has 'a', 'b'").
std::string read_safetensors(std::span<const uint8_t> file, const std::string& name,
                             FoundTarget& out);

}  // namespace stoker
