// NumPy's files of one array (numpy.org/neps/nep-0001-npy-format.html): a magic number, a version,
// the length of a header, the header (a literal of a Python dictionary with descr, fortran_order
// and shape), the numbers. A function of its arguments alone. Threads: any.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "pipeline/source/format/found_target.h"

namespace stoker {

// Sets `out` to the array in `file`, of versions 1.0 to 3.0: booleans, integers, floats of 2, 4 and
// 8 bytes, the low byte first, in C's order. Returns "" or what is wrong ("is no .npy file").
std::string read_npy(std::span<const uint8_t> file, FoundTarget& out);

}  // namespace stoker
