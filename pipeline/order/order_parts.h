// Shared by several orders: their draw numbers, their weights, and passes through a
// group. Values and pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace stoker {

// Used with a RandomKey, far from the draws of augmentation and of substitutes: no order may change
// because the same key gets another use. A change here changes the order of runs.
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
  kStepShape,                // of (seed, epoch, step / hold): the size of a step
  kBucketShuffle,            // of (seed, epoch, bucket): the order of its samples,
  kBucketShuffleFactor,      // by the two numbers of a PermutationKey
  kStepShuffle,              // of (seed, epoch, -1): the order of the steps of all buckets,
  kStepShuffleFactor,        // by the two numbers of a PermutationKey
};

// Throws std::invalid_argument, with the first one and its number, for a weight that is negative or
// not finite, for no weight above 0, and for a sum that is not finite. `owner` begins the message.
void check_weights(const std::string& owner, std::span<const double> weights);

// REQUIRES: checked weights.
uint64_t weights_digest(std::span<const double> weights);

struct PassMember {
  int64_t member = 0;         // in [0, members)
  uint64_t repeat_index = 0;  // how often it has come since the mark
};

// Walks through the members of a group (a class, a source) again and again: every pass has each
// member once, in a shuffled order of its own.
class Passes {
 public:
  // `seed` belongs to this group alone. REQUIRES: members >= 1.
  Passes(uint64_t seed, int64_t members) : seed_(seed), members_(members) {}
  // Returns the member at place `index` of the endless walk. `mark` <= index: the place from which
  // repeat indexes are counted, that of the epoch's first position.
  PassMember at(uint64_t index, uint64_t mark) const;

 private:
  uint64_t seed_;
  int64_t members_;
};

}  // namespace stoker
