// The draw numbers that orders use with a RandomKey, far from those of augmentation and of
// substitutes: no order may change because the same key gets another use. A change here changes the
// order of runs.
#pragma once

#include <cstdint>

namespace stoker {

enum OrderDraw : uint32_t {
  kRepeatSeed = 0x4F524400,  // of (seed, repeat_index, 0): the seed of its pixels
  kColumn,                   // of (seed, epoch, position): the column of an alias table
  kSide,                     // of the same: which of the column's two samples
  kArrival,                  // of (seed, epoch, sample): its place without replacement
  kRoundSeed,                // of (seed, 0, 0): the seed of the order of the classes in a round
  kPartSeed,                 // of (seed, 0, class or source): the seed of its passes
  kPoolShuffle,              // of (seed, epoch, pool): the order in a pool of blocks,
  kPoolShuffleFactor,        // by the two numbers of a PermutationKey
  kRingCut,                  // of (seed, epoch, -1): where the first block begins
};

}  // namespace stoker
