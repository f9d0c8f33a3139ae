// Many numbered draws of one key at once, by vectors: Philox4x32-10 (Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", SC'11). staging/philox.h has the same for one draw, for
// kernels. Stateless; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace stoker {

// Sets draws[i] to the first two words of the block of the counter {counter[0], counter[1],
// counter[2], first + i}; the first word is the high half. The sum wraps at 2^32.
void fill_philox_draws(const std::array<uint32_t, 2>& key, const std::array<uint32_t, 3>& counter,
                       uint32_t first, std::span<uint64_t> draws);

}  // namespace stoker
