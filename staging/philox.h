// Numbers that follow from a key and a counter alone: Philox4x32-10 (Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", SC'11). It is compiled by both compilers, so that a kernel
// draws the numbers that the host draws. Values; any thread.
#pragma once

#include <array>
#include <cstdint>

namespace stoker {

// Computes one block of Philox4x32 with 10 rounds. It is always inlined: the blocks of several
// draws are then computed in parallel, and the linker cannot choose the copy of a file that was
// compiled with less optimisation.
[[gnu::always_inline]] constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                                                    std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// The numbered draws of one key.
struct PhiloxDraws {
  std::array<uint32_t, 2> key{};
  std::array<uint32_t, 3> counter{};  // its fourth word is the number of a draw

  [[gnu::always_inline]] constexpr std::array<uint32_t, 4> block(uint32_t draw) const {
    return philox4x32({counter[0], counter[1], counter[2], draw}, key);
  }
  [[gnu::always_inline]] constexpr uint64_t bits(uint32_t draw) const {
    const auto words = block(draw);
    return (uint64_t{words[0]} << 32) | words[1];
  }
};

}  // namespace stoker
