#include "pipeline/order/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "pipeline/files/invalid_field.h"

namespace stoker {
namespace {

// Sizes at which cycle walking and powers of two fail easily: 1..70, and 2^k - 1, 2^k, 2^k + 1.
std::vector<int64_t> delicate_sizes(int max_power) {
  std::vector<int64_t> sizes(70);
  std::iota(sizes.begin(), sizes.end(), 1);
  for (int power = 7; power <= max_power; ++power) {
    for (int64_t delta : {-1, 0, 1}) sizes.push_back((int64_t{1} << power) + delta);
  }
  return sizes;
}

Sampler make(int64_t samples, int rows, int replicas, LastBatch last_batch = LastBatch::pad,
             uint64_t seed = 0, bool shuffle = true) {
  return Sampler({.samples = samples,
                  .rows = rows,
                  .replicas = replicas,
                  .seed = seed,
                  .shuffle = shuffle,
                  .last_batch = last_batch});
}

SampleId permute(const Sampler& sampler, int64_t epoch, int64_t position) {
  return sampler.order().at(sampler.key(epoch), position).id;
}

bool is_permutation_of(const Sampler& sampler, int64_t epoch) {
  std::vector<uint8_t> seen(static_cast<size_t>(sampler.options().samples));
  for (int64_t position = 0; position < sampler.options().samples; ++position) {
    const SampleId id = permute(sampler, epoch, position);
    if (id < 0 || id >= sampler.options().samples || seen[static_cast<size_t>(id)]++) return false;
  }
  return true;
}

TEST(Sampler, OrderIsAPermutationOfEverySize) {
  for (int64_t samples : delicate_sizes(20)) {
    EXPECT_TRUE(is_permutation_of(make(samples, 1, 1, LastBatch::pad, 3), 1)) << samples;
  }
}

// Returns the chi-square of `counts` against equal expectations, in deviations from its mean.
double deviation(const std::vector<int>& counts) {
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double expected = total / static_cast<double>(counts.size());
  double chi_square = 0;
  for (int count : counts) chi_square += (count - expected) * (count - expected) / expected;
  const double freedom = static_cast<double>(counts.size()) - 1;
  return (chi_square - freedom) / std::sqrt(2 * freedom);
}

TEST(Sampler, EveryOrderOfAFewSamplesIsEquallyLikely) {
  for (int64_t samples : {2, 3, 4, 5, 6}) {
    const Sampler sampler = make(samples, 1, 1, LastBatch::pad, 11);
    std::map<std::vector<SampleId>, int> orders;
    const int epochs = samples < 6 ? 48000 : 144000;
    for (int64_t epoch = 0; epoch < epochs; ++epoch) {
      std::vector<SampleId> order;
      for (int64_t p = 0; p < samples; ++p) order.push_back(permute(sampler, epoch, p));
      ++orders[order];
    }
    std::vector<int> counts;
    for (const auto& [order, count] : orders) counts.push_back(count);
    EXPECT_EQ(counts.size(), std::tgamma(samples + 1)) << samples;
    EXPECT_LT(deviation(counts), 5) << samples;
  }
}

TEST(Sampler, EverySampleComesAtEveryPositionOverEpochs) {
  for (int64_t samples : {7, 13, 31, 32, 33}) {
    const Sampler sampler = make(samples, 1, 1, LastBatch::pad, 5);
    const auto n = static_cast<size_t>(samples);
    std::vector<int> counts(n * n);
    for (int64_t epoch = 0; epoch < 100 * samples; ++epoch) {
      for (size_t p = 0; p < n; ++p) {
        const SampleId id = permute(sampler, epoch, static_cast<int64_t>(p));
        ++counts[p * n + static_cast<size_t>(id)];
      }
    }
    EXPECT_LT(deviation(counts), 5) << samples;
  }
}

// A shuffled order must have no trace of the sorted one: neither in neighbours nor in all ranks.
TEST(Sampler, LargeOrdersHaveNoStructure) {
  const int64_t samples = 50000;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const Sampler sampler = make(samples, 1, 1, LastBatch::pad, seed);
    const double mean = (samples - 1) / 2.0, variance = (1.0 * samples * samples - 1) / 12;
    double serial = 0, rank = 0;
    std::vector<int> differences(64);
    SampleId previous = permute(sampler, 0, samples - 1);
    for (int64_t position = 0; position < samples; ++position) {
      const SampleId id = permute(sampler, 0, position);
      serial += (id - mean) * (previous - mean);
      rank += (id - mean) * (position - mean);
      ++differences[static_cast<size_t>((id - previous + samples) % samples * 64 / samples)];
      previous = id;
    }
    EXPECT_LT(std::abs(serial / samples / variance), 5 / std::sqrt(samples));
    EXPECT_LT(std::abs(rank / samples / variance), 5 / std::sqrt(samples));
    EXPECT_LT(deviation(differences), 5);
  }
}

TEST(Sampler, EpochsAndSeedsOrderDifferently) {
  constexpr int64_t kSamples = 10000;
  const auto fixed_points = [&](const Sampler& a, int64_t epoch_a, const Sampler& b,
                                int64_t epoch_b) {
    int64_t same = 0;
    for (int64_t p = 0; p < kSamples; ++p) same += permute(a, epoch_a, p) == permute(b, epoch_b, p);
    return same;  // about one, as in any two random orders
  };
  const Sampler first = make(kSamples, 1, 1, LastBatch::pad, 1);
  const Sampler second = make(kSamples, 1, 1, LastBatch::pad, 2);
  EXPECT_LT(fixed_points(first, 0, first, 1), 10);
  EXPECT_LT(fixed_points(first, 0, second, 0), 10);
  EXPECT_LT(fixed_points(first, 1, second, 0), 10);
}

// Counts how often each sample comes with weight 1 in an epoch, over all replicas.
std::vector<int> counted(const Sampler& sampler, int64_t epoch) {
  const SamplerOptions& options = sampler.options();
  std::vector<int> counts(static_cast<size_t>(options.samples));
  for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
    for (int replica = 0; replica < options.replicas; ++replica) {
      for (int row = 0; row < options.rows; ++row) {
        const SampledRow sampled = sampler.row(epoch, step, replica, row);
        if (sampled.weight > 0) ++counts[static_cast<size_t>(sampled.id)];
      }
    }
  }
  return counts;
}

TEST(Sampler, PadCountsEverySampleOnceForAnyReplicas) {
  for (int64_t samples : delicate_sizes(12)) {
    for (int replicas = 1; replicas <= 8; ++replicas) {
      for (int rows : {1, 3, 64}) {
        const Sampler sampler = make(samples, rows, replicas, LastBatch::pad, 9);
        const int64_t batch = int64_t{rows} * replicas;
        ASSERT_EQ(sampler.steps_per_epoch(), (samples + batch - 1) / batch);
        const std::vector<int> counts = counted(sampler, 2);
        ASSERT_TRUE(std::all_of(counts.begin(), counts.end(), [](int c) { return c == 1; }))
            << samples << " samples, " << replicas << " replicas of " << rows << " rows";
      }
    }
  }
}

TEST(Sampler, PadRepeatsRealRowsOfTheSameBatchEvenly) {
  for (int64_t samples : {1, 2, 5, 9, 17, 33}) {
    for (int replicas : {1, 2, 4}) {
      const Sampler sampler = make(samples, 8, replicas);
      const int64_t last = sampler.steps_per_epoch() - 1;
      std::map<SampleId, int> real, repeats;
      for (int replica = 0; replica < replicas; ++replica) {
        for (int row = 0; row < 8; ++row) {
          const SampledRow sampled = sampler.row(0, last, replica, row);
          ++(sampled.weight > 0 ? real : repeats)[sampled.id];
        }
      }
      int fewest = 1 << 30, most = 0;
      for (const auto& [id, count] : real) {
        EXPECT_EQ(count, 1);
        const auto found = repeats.find(id);
        const int repeated = found == repeats.end() ? 0 : found->second;
        fewest = std::min(fewest, repeated);
        most = std::max(most, repeated);
      }
      for (const auto& [id, count] : repeats) EXPECT_TRUE(real.contains(id));
      EXPECT_LE(most - fewest, 1);
    }
  }
}

TEST(Sampler, RefusesAGridThatNoBatchLeaves) {
  const auto refused = [](EpochGrid grid, LastBatch policy) {
    SamplerOptions options = make(41, 8, 1, policy).options();
    options.grid = grid;
    EXPECT_THROW(Sampler{options}, std::invalid_argument)
        << grid.step << " at " << grid.position << ", " << to_string(policy);
  };
  for (const LastBatch policy : {LastBatch::pad, LastBatch::drop, LastBatch::wrap}) {
    refused({2, 1, -1}, policy);
    refused({2, 1, 41}, policy);
    refused({2, 1, int64_t{1} << 62}, policy);
    refused({2, -1, 4}, policy);
    refused({2, 5, 4}, policy);
    refused({2, 0, 16}, policy);
  }
  SamplerOptions options = make(41, 8, 1).options();
  options.grid = continue_at(Sampler(options), 2, {12}).grid;
  EXPECT_EQ(options.grid, (EpochGrid{2, 2, 12, {}}));
  EXPECT_NO_THROW(Sampler{options});
}

// An epoch goes on after any step with batches of any other size, and ends with its usual last
// step.
TEST(Sampler, AnEpochGoesOnWithBatchesOfAnotherSize) {
  const int64_t samples = 41;
  for (const LastBatch policy : {LastBatch::pad, LastBatch::drop, LastBatch::wrap}) {
    for (const int before : {1, 4, 6, 20}) {
      for (const int after : {1, 3, 8, 20, 41}) {
        const Sampler first = make(samples, before, 1, policy),
                      second = make(samples, after, 1, policy);
        for (int64_t step = 0; step < first.steps_per_epoch(); ++step) {
          SCOPED_TRACE(std::to_string(before) + " -> " + std::to_string(after) + " after step " +
                       std::to_string(step));
          const std::vector<int64_t> taken = first.taken(2, step);
          const int64_t position = taken[0];
          const Continuation next = continue_at(second, 2, taken);
          SamplerOptions options = second.options();
          options.grid = next.grid;
          const Sampler going_on(options);
          std::vector<int> counts(samples);
          for (int64_t each = 0; each < step; ++each) {
            for (int row = 0; row < before; ++row) ++counts[first.row(2, each, 0, row).id];
          }
          int64_t rest = 0;
          for (int64_t each = next.step; each < 3 * second.steps_per_epoch(); ++each) {
            for (int row = 0; row < after; ++row, ++rest) {
              const SampledRow sampled =
                  going_on.row(2, each - 2 * second.steps_per_epoch(), 0, row);
              if (sampled.weight > 0) ++counts[sampled.id];
            }
          }
          const int64_t once = std::count(counts.begin(), counts.end(), 1);
          const int64_t left = samples - position;
          if (policy == LastBatch::pad) {
            EXPECT_EQ(once, samples);
          } else if (policy == LastBatch::drop) {
            EXPECT_EQ(once, position + left / after * after);
            EXPECT_EQ(rest, left / after * after);
          } else {
            EXPECT_EQ(std::count(counts.begin(), counts.end(), 0), 0);
            EXPECT_LT(rest, left + after);
          }
          // The other epochs are as always.
          EXPECT_EQ(going_on.row(3, 0, 0, 0).id, second.row(3, 0, 0, 0).id);
        }
      }
    }
  }
}

TEST(Sampler, DropLeavesOutLessThanABatchAndRepeatsNothing) {
  for (int64_t samples : {8, 9, 15, 16, 17, 129}) {
    const Sampler sampler = make(samples, 4, 2, LastBatch::drop);
    EXPECT_EQ(sampler.steps_per_epoch(), samples / 8);
    const std::vector<int> counts = counted(sampler, 0);
    EXPECT_LE(*std::max_element(counts.begin(), counts.end()), 1);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), samples / 8 * 8);
  }
}

TEST(Sampler, WrapFillsWithTheEpochsFirstSamples) {
  const Sampler sampler = make(11, 4, 2, LastBatch::wrap);
  EXPECT_EQ(sampler.steps_per_epoch(), 2);
  for (int row = 0; row < 8; ++row) {
    const SampledRow sampled = sampler.row(3, 1, row / 4, row % 4);
    EXPECT_EQ(sampled.weight, 1.0f);
    EXPECT_EQ(sampled.id, permute(sampler, 3, (8 + row) % 11));
  }
  const Sampler tiny = make(3, 4, 2, LastBatch::wrap);  // wraps more than once in one batch
  const std::vector<int> counts = counted(tiny, 0);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), 8);
  EXPECT_LE(*std::max_element(counts.begin(), counts.end()), 3);
  EXPECT_GE(*std::min_element(counts.begin(), counts.end()), 2);
}

TEST(Sampler, TheGlobalBatchIsTheSameForAnyNumberOfReplicas) {
  for (LastBatch policy : {LastBatch::pad, LastBatch::drop, LastBatch::wrap}) {
    const Sampler one = make(101, 24, 1, policy, 4);
    for (int replicas : {2, 3, 4, 6}) {
      const int rows = 24 / replicas;
      const Sampler many = make(101, rows, replicas, policy, 4);
      ASSERT_EQ(one.steps_per_epoch(), many.steps_per_epoch());
      for (int64_t step = 0; step < one.steps_per_epoch(); ++step) {
        for (int row = 0; row < 24; ++row) {
          const SampledRow a = one.row(1, step, 0, row);
          const SampledRow b = many.row(1, step, row / rows, row % rows);
          EXPECT_EQ(a.id, b.id);
          EXPECT_EQ(a.weight, b.weight);
        }
      }
    }
  }
}

TEST(Sampler, WithoutShuffleTheOrderIsTheSources) {
  const Sampler sampler = make(10, 4, 1, LastBatch::pad, 1, false);
  for (int64_t p = 0; p < 10; ++p) EXPECT_EQ(permute(sampler, 7, p), p);
}

TEST(Sampler, RefusesWhatCannotWorkWithTheNumbers) {
  EXPECT_THROW(make(0, 1, 1), std::invalid_argument);
  EXPECT_THROW(make(5, 0, 1), std::invalid_argument);
  EXPECT_THROW(make(5, 1, 0), std::invalid_argument);
  EXPECT_THROW(make((int64_t{1} << 40) + 1, 1, 1), std::invalid_argument);
  try {
    make(7, 4, 2, LastBatch::drop);
    FAIL();
  } catch (const InvalidField& error) {
    EXPECT_EQ(error.field(), "batch_size");
    EXPECT_NE(
        std::string(error.what()).find("a global batch of 8 samples is more than the 7 samples"),
        std::string::npos);
  }
}

}  // namespace
}  // namespace stoker
