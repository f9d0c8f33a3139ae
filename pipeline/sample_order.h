// Which samples an epoch takes, and in which order: a pure function of (seed, epoch, position). So
// a feed resumes at any step from the step's number alone, and the order is the same for any number
// of ranks and devices and any batch size. Owner: shared by the Loaders that use it. Threads: any.
// Errors: the functions that make orders throw std::invalid_argument with the numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/random/permutation.h"
#include "staging/batch_layout.h"

namespace stoker {

struct OrderedSample {
  SampleId id = 0;
  // Tells apart the rows of one epoch that show one sample. Orders count: 0 is the first, so a
  // sample that comes once has 0. (Draws with replacement cannot count; theirs is the position.)
  uint64_t repeat_index = 0;
  bool operator==(const OrderedSample&) const = default;
};

// The seed of a row's pixels: `seed` itself for repeat index 0. The pixels are a function of
// (repeat_seed(seed, repeat_index), epoch, sample id), so a sample that comes twice in an epoch is
// cropped in two ways.
uint64_t repeat_seed(uint64_t seed, uint64_t repeat_index);
[[deprecated("repeat_seed")]] inline uint64_t appearance_seed(uint64_t seed, uint64_t appearance) {
  return repeat_seed(seed, appearance);
}

class BucketTurns;

// An epoch, and the key of a shuffled order for it; made once for many positions.
struct EpochKey {
  EpochKey(uint64_t seed_in, int64_t epoch_in);
  uint64_t seed;
  int64_t epoch;
  PermutationKey shuffle;
  std::shared_ptr<const BucketTurns> steps{};  // of Sampler::key(), if steps are of buckets
};

class SampleOrder {
 public:
  virtual ~SampleOrder() = default;
  SampleOrder(const SampleOrder&) = delete;
  SampleOrder& operator=(const SampleOrder&) = delete;

  // The size of the source that this order is for: ids are in [0, samples).
  int64_t samples() const { return samples_; }
  // The positions of an epoch, [0, length); the same for every epoch. Positions that the last batch
  // leaves out (LastBatch::drop) count as taken in passes and schedules.
  int64_t length() const { return length_; }
  virtual OrderedSample at(const EpochKey& epoch, int64_t position) const = 0;
  // One line that orders have in common only if they are the same: part of the Loader's fingerprint
  // and of receipts. Tables, such as weights, are in it as digests.
  virtual std::string describe() const = 0;

 protected:
  // `kind` is for the message. Throws std::invalid_argument unless both are 1 to 2^40.
  SampleOrder(const char* kind, int64_t samples, int64_t length);

 private:
  const int64_t samples_, length_;
};

using SharedOrder = std::shared_ptr<const SampleOrder>;

// Every sample once, in another order each epoch: a keyed Permutation.
SharedOrder shuffled_order(int64_t samples);

struct BlockShuffledOptions {
  int64_t samples = 0;
  int64_t block = 16;  // samples that lie one behind the other; 1 to 2^20
  int64_t mixed = 64;  // blocks whose samples come mixed with each other; 1 to 2^20
};
// Every sample once: the blocks come in a shuffled order, other blocks in each epoch, and the
// samples of `mixed` blocks are shuffled. A source that reads from afar then reads whole blocks,
// where its memory holds the samples of `mixed` of them. It shuffles less than shuffled_order():
// the samples of a block come within block * mixed positions of each other. Other loaders shuffle
// in such ways, too: py1br of MosaicML's Streaming, QUASI_RANDOM of FFCV.
SharedOrder block_shuffled_order(const BlockShuffledOptions& options);

// Every sample once, in the order of the source.
SharedOrder sequential_order(int64_t samples);

struct WeightedOptions {
  int64_t length = 0;
  bool replacement = true;
};
// Sample i comes with probability weights[i] / sum of weights, as with
// torch.utils.data.WeightedRandomSampler. Weights are finite and not negative; a weight of 0 never
// comes.
// With replacement the positions are independent draws. Algorithm: the alias method (Vose, "A
// linear algorithm for generating random numbers with a given distribution", 1991). Memory: 12
// bytes per sample.
// Without replacement no sample comes twice in an epoch, and each next one is drawn from the rest
// by weight; `length` is at most the number of weights above 0. Algorithm: Efraimidis and Spirakis,
// "Weighted random sampling with a reservoir", 2006. It sorts once per epoch, when the epoch is
// first used (the other threads wait), and keeps the last two epochs: 8 bytes per position.
SharedOrder weighted_order(std::span<const double> weights, const WeightedOptions& options);

// Every class that has samples equally often: after any number of positions, from the beginning of
// training on, the classes' counts differ by at most 1. `labels` has the class of each sample, from
// 0. The positions are dealt in rounds of all classes, each round in a shuffled order; within a
// class every sample comes once, in a shuffled order, before any comes again, also across epochs.
SharedOrder class_balanced_order(std::span<const int32_t> labels, int64_t length);

struct RepeatedOptions {
  int64_t samples = 0;
  int repeats = 3;
  int64_t length = 0;  // 0: as many as samples; at most samples * repeats
};
// Repeated augmentation (Hoffer et al., "Augment your batch", 2020; the RASampler of DeiT, Touvron
// et al. 2021): `repeats` positions in a row show one sample, in different crops, so that an epoch
// as long as the source shows samples / repeats different ones, others each epoch. A sample's
// repetitions are in one global batch where `repeats` divides its size. (The RASampler deals them
// to different ranks.)
SharedOrder repeated_order(const RepeatedOptions& options);

// The shares of the sources from a position on.
struct BlendPiece {
  int64_t first_position = 0;     // in samples since the beginning of training: epoch * length + p
  std::vector<double> weights{};  // one for each source; their sum need not be 1
};
struct BlendOptions {
  std::vector<int64_t> sizes{};  // of the sources; ids continue from one source to the next
  // Piecewise constant; the first piece begins at 0. One piece: constant shares.
  std::vector<BlendPiece> schedule{};
  int64_t length = 0;
};
// For a ConcatSource: each source gets its share of the positions, spread as evenly as whole
// numbers allow. After any number of positions within a piece, a source's count is within 1 of its
// exact share for up to three sources, and within 2 for more; it never drifts. Within a source
// every sample comes once, in a shuffled order, before any comes again: passes over a source end
// where they end, not with the epoch. Algorithm: positions are split in two parts by a line of
// slope `share` (Bresenham, "Algorithm for computer control of a digital plotter", 1965), and each
// part again, along a Huffman tree of the shares; all in integers.
SharedOrder blend_order(const BlendOptions& options);

}  // namespace stoker
