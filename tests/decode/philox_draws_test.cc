// Many draws at once: every instruction set gives the draws of the block function.
#include "decode/philox_draws.h"

#include <gtest/gtest.h>

#include <vector>

#include "staging/philox.h"
#include "tests/decode/every_target.h"

namespace stoker {
namespace {

using ManyPhiloxDraws = EveryTarget;

// Keys and counters with few and with all bits.
const PhiloxDraws kDraws[] = {
    {.key = {0, 0}, .counter = {0, 0, 0}},
    {.key = {0xFFFFFFFF, 0xFFFFFFFF}, .counter = {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}},
    {.key = {0xA4093822, 0x299F31D0}, .counter = {0x243F6A88, 0x85A308D3, 0x13198A2E}},
    {.key = {1, 0}, .counter = {0, 0x80000000, 7}}};

TEST_P(ManyPhiloxDraws, AreThoseOfOneByOne) {
  constexpr uint64_t kUntouched = 0x0123456789ABCDEF;
  // The last of these wraps.
  for (const uint32_t first : {0u, 1u, 63u, 0x7FFFFFFDu, 0xFFFFFFFBu}) {
    for (const PhiloxDraws& each : kDraws) {
      for (size_t count = 0; count <= 200; ++count) {
        std::vector<uint64_t> draws(count + 16, kUntouched), expected = draws;
        for (size_t i = 0; i < count; ++i)
          expected[i] = each.bits(first + static_cast<uint32_t>(i));
        fill_philox_draws(each.key, each.counter, first, std::span(draws).first(count));
        ASSERT_EQ(draws, expected) << count << " draws from " << first;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ManyPhiloxDraws, every_target(), target_name);

}  // namespace
}  // namespace stoker
