// An order that is shuffled by blocks of neighbours, so that what lies together is read together.
#include <algorithm>
#include <stdexcept>

#include "pipeline/order/order_parts.h"
#include "pipeline/random/random_key.h"
#include "pipeline/sample_order.h"

namespace stoker {
namespace {

void check_setting(const char* what, int64_t value) {
  constexpr int64_t kMax = int64_t{1} << 20;
  if (value >= 1 && value <= kMax) return;
  throw std::invalid_argument(std::string("block-shuffled order: ") + what + " is " +
                              std::to_string(value) + ", must be 1 to 2^20");
}

// The samples are a ring, which is cut into blocks from another place in each epoch. The last block
// may be short. The blocks come in a shuffled order, so many of them make a pool, and the samples
// of a pool are shuffled. All pools are full but the last one and the one with the short block.
class BlockShuffled final : public SampleOrder {
 public:
  explicit BlockShuffled(const BlockShuffledOptions& options)
      : SampleOrder("block-shuffled", options.samples, options.samples),
        block_(options.block),
        mixed_(options.mixed) {
    check_setting("block", block_);
    check_setting("mixed", mixed_);
    blocks_ = (samples() + block_ - 1) / block_;
    missing_ = blocks_ * block_ - samples();
  }

  OrderedSample at(const EpochKey& epoch, int64_t position) const override {
    const Permutation order_of_blocks(blocks_, epoch.shuffle);
    const int64_t pool_size = block_ * mixed_;
    // Where the short block is; behind its end, positions are those of full blocks, less what is
    // missing.
    const int64_t short_place = order_of_blocks.position_of(blocks_ - 1);
    const int64_t short_pool = short_place / mixed_;
    const int64_t end_of_short_pool = std::min((short_pool + 1) * pool_size, blocks_ * block_);
    const bool is_behind = position >= end_of_short_pool - missing_;
    const int64_t pool = (position + (is_behind ? missing_ : 0)) / pool_size;
    const bool has_short = pool == short_pool;
    const int64_t begin = pool * pool_size;
    const int64_t size = std::min(pool_size, blocks_ * block_ - begin) - (has_short ? missing_ : 0);
    const int64_t first = begin - (is_behind ? missing_ : 0);

    const RandomKey random(epoch.seed, epoch.epoch, pool);
    const PermutationKey key{random.bits(kPoolShuffle), random.bits(kPoolShuffleFactor) | 1};
    int64_t place = Permutation(size, key).at(position - first);
    const int64_t end_of_short = (short_place % mixed_ + 1) * block_ - missing_;
    if (has_short && place >= end_of_short) place += missing_;

    const int64_t block = order_of_blocks.at(pool * mixed_ + place / block_);
    const int64_t cut = RandomKey(epoch.seed, epoch.epoch, -1).below(kRingCut, samples());
    return {(block * block_ + place % block_ + cut) % samples(), 0};
  }

  std::string describe() const override {
    return "shuffled by blocks of " + std::to_string(block_) + ", " + std::to_string(mixed_) +
           " mixed";
  }

 private:
  const int64_t block_, mixed_;
  int64_t blocks_ = 0;
  int64_t missing_ = 0;  // from the last block
};

}  // namespace

SharedOrder block_shuffled_order(const BlockShuffledOptions& options) {
  return std::make_shared<BlockShuffled>(options);
}

}  // namespace stoker
