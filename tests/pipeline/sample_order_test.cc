// The orders: each against what it promises, with fixed seeds, so that every bound is exact. The
// chi-squares are compared with five deviations above their mean.
#include "pipeline/sample_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <thread>

#include "pipeline/order/alias_table.h"
#include "pipeline/order/order_parts.h"
#include "pipeline/order/sampler.h"
#include "pipeline/random/random_key.h"
#include "tests/pipeline/order_support.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kFar = int64_t{1} << 40;

std::vector<double> drawn_weights(size_t count) {
  std::mt19937_64 random(7);
  std::vector<double> weights;
  for (size_t i = 0; i < count; ++i) {
    weights.push_back(i % 5 == 3 ? 0 : std::exp(std::normal_distribution<>(0, 2)(random)));
  }
  return weights;
}

std::vector<int32_t> drawn_labels(size_t count) {
  std::vector<int32_t> labels;
  for (size_t i = 0; i < count; ++i) labels.push_back(i % 10 < 7 ? 4 : i % 10 < 9 ? 0 : 9);
  return labels;
}

struct NamedOrder {
  const char* name;
  SharedOrder order;
  bool counts = true;  // repeat indexes are counts
};

// All kinds for a source of 30 samples, with lengths that are no multiples of anything.
std::vector<NamedOrder> all_kinds() {
  const std::vector<double> weights = drawn_weights(30);
  const std::vector<int32_t> labels = drawn_labels(30);
  return {{"shuffled", shuffled_order(30)},
          {"block-shuffled", block_shuffled_order({.samples = 30, .block = 4, .mixed = 3})},
          {"sequential", sequential_order(30)},
          {"weighted", weighted_order(weights, {.length = 47}), false},
          {"weighted once", weighted_order(weights, {.length = 19, .replacement = false})},
          {"class balanced", class_balanced_order(labels, 37)},
          {"repeated", repeated_order({.samples = 30, .repeats = 3, .length = 41})},
          {"blend", blend_order({.sizes = {4, 19, 7},
                                 .schedule = {{0, {1, 2, 3}}, {50, {3, 0, 1}}, {131, {1, 1, 1}}},
                                 .length = 43})}};
}

// Returns by how many deviations the chi-square of `counts` lies above its mean.
double excess(const std::vector<int64_t>& counts, const std::vector<double>& shares) {
  const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  double chi_square = 0, freedom = -1;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (shares[i] == 0) {
      EXPECT_EQ(counts[i], 0) << i;
      continue;
    }
    const double expected = total * shares[i] / sum;
    chi_square += std::pow(static_cast<double>(counts[i]) - expected, 2) / expected;
    ++freedom;
  }
  return (chi_square - freedom) / std::sqrt(2 * freedom);
}

TEST(Permutation, PositionOfIsTheInverse) {
  std::vector<int64_t> sizes{1, 2, 3, 5, 31, 32, 33, 1000, 4095, 4096, 4097, 8193, 100003};
  for (const int64_t size : sizes) {
    const Permutation order(size, EpochKey(3, size).shuffle);
    for (int64_t p = 0; p < size; ++p) ASSERT_EQ(order.position_of(order.at(p)), p) << size;
  }
  const Permutation order(kFar, EpochKey(3, 1).shuffle);
  for (int64_t p = 0; p < kFar; p += kFar / 1001) ASSERT_EQ(order.position_of(order.at(p)), p);
}

// Stored runs are resumed with these: the orders must never change.
TEST(SampleOrder, ShuffledKeepsItsOrder) {
  const auto some = [](int64_t samples) {
    const SharedOrder order = shuffled_order(samples);
    const EpochKey key(42, 3);
    std::vector<SampleId> ids;
    for (const int64_t p : {int64_t{0}, int64_t{1}, int64_t{2}, samples - 1}) {
      ids.push_back(order->at(key, p).id);
    }
    return ids;
  };
  EXPECT_EQ(some(7), (std::vector<SampleId>{2, 0, 6, 3}));
  EXPECT_EQ(some(1000), (std::vector<SampleId>{925, 823, 906, 686}));
  EXPECT_EQ(some(1281167), (std::vector<SampleId>{687523, 159281, 892085, 414828}));
  EXPECT_EQ(some(kFar),
            (std::vector<SampleId>{664104214060, 62778535530, 33401233542, 750531466393}));
}

TEST(SampleOrder, IdsAreInRangeAndAppearancesCount) {
  for (const auto& [name, order, counts] : all_kinds()) {
    ASSERT_EQ(order->samples(), 30);
    for (int64_t epoch = 0; epoch < 40; ++epoch) {
      std::map<SampleId, uint64_t> seen;
      for (const OrderedSample& sample : epoch_of(*order, 5, epoch)) {
        ASSERT_GE(sample.id, 0) << name;
        ASSERT_LT(sample.id, 30) << name;
        if (counts) {
          ASSERT_EQ(sample.repeat_index, seen[sample.id]++) << name << ", epoch " << epoch;
        }
      }
    }
  }
}

TEST(SampleOrder, EpochsAndSeedsDiffer) {
  for (const auto& [name, order, counts] : all_kinds()) {
    if (order->describe() == "sequential") continue;
    EXPECT_NE(epoch_of(*order, 1, 0), epoch_of(*order, 1, 1)) << name;
    EXPECT_NE(epoch_of(*order, 1, 0), epoch_of(*order, 2, 0)) << name;
    EXPECT_EQ(epoch_of(*order, 1, 7), epoch_of(*order, 1, 7)) << name;
  }
}

// Every row of every step is the same for any number of replicas and any rows, with and without
// what fills up the last batch; the rows that count are the order.
TEST(SampleOrder, TheGlobalOrderIsTheSameForAnyReplicasAndRows) {
  for (const auto& [name, order, counts] : all_kinds()) {
    for (const int replicas : {1, 2, 3, 8}) {
      for (const int rows : {1, 3, 4, 64}) {
        const Sampler sampler(
            {.samples = 30, .rows = rows, .replicas = replicas, .seed = 9, .order = order});
        for (int64_t epoch = 0; epoch < 3; ++epoch) {
          std::vector<OrderedSample> counted;
          for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
            for (int i = 0; i < replicas * rows; ++i) {
              const SampledRow row = sampler.row(epoch, step, i / rows, i % rows);
              if (row.weight > 0) counted.push_back({row.id, row.repeat_index});
            }
          }
          ASSERT_EQ(counted, epoch_of(*order, 9, epoch))
              << name << ", " << replicas << " x " << rows;
        }
      }
    }
  }
}

// Compares the shuffle with std::shuffle: the mean distance of neighbours' ids, and how many pairs
// of neighbours two epochs share. A uniform permutation has n / 3 and, whatever their order,
// about 2.
TEST(SampleOrder, NeighboursOfTheShuffleAreLikeThoseOfAUniformOne) {
  constexpr int64_t kSamples = 20000;
  constexpr int kEpochs = 20;
  std::mt19937_64 random(3);
  std::vector<SampleId> uniform(kSamples);
  std::iota(uniform.begin(), uniform.end(), 0);
  const SharedOrder order = shuffled_order(kSamples);
  double distances[2] = {};
  int64_t shared[2] = {};
  std::set<std::pair<SampleId, SampleId>> pairs[2];
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    std::shuffle(uniform.begin(), uniform.end(), random);
    std::vector<SampleId> ours;
    for (const OrderedSample& sample : epoch_of(*order, 1, epoch)) ours.push_back(sample.id);
    for (const int kind : {0, 1}) {
      const std::vector<SampleId>& ids = kind == 0 ? uniform : ours;
      std::set<std::pair<SampleId, SampleId>> now;
      for (size_t i = 1; i < ids.size(); ++i) {
        const auto pair = std::minmax(ids[i - 1], ids[i]);
        distances[kind] += static_cast<double>(pair.second - pair.first);
        shared[kind] += pairs[kind].contains(pair);
        now.insert(pair);
      }
      pairs[kind] = std::move(now);
    }
  }
  for (const int kind : {0, 1}) {
    // One deviation of the mean of 400000 distances is 0.00037 n.
    EXPECT_NEAR(distances[kind] / kEpochs / (kSamples - 1) / kSamples, 1.0 / 3, 0.0015) << kind;
    // 19 pairs of epochs with 2 shared each: 38 with a deviation of 6.
    EXPECT_GE(shared[kind], 38 - 31) << kind;
    EXPECT_LE(shared[kind], 38 + 31) << kind;
  }
}

// The same order by tables: the ring is cut, its blocks are shuffled, pools are joined and
// shuffled.
std::vector<SampleId> block_shuffled_by_tables(int64_t samples, int64_t block, int64_t mixed,
                                               uint64_t seed, int64_t epoch) {
  const int64_t cut = RandomKey(seed, epoch, -1).below(kRingCut, samples);
  std::vector<std::vector<SampleId>> blocks;
  for (int64_t i = 0; i < samples; ++i) {
    if (i % block == 0) blocks.emplace_back();
    blocks.back().push_back((i + cut) % samples);
  }
  const Permutation order(std::ssize(blocks), EpochKey(seed, epoch).shuffle);
  std::vector<SampleId> ids;
  for (int64_t first = 0; first < std::ssize(blocks); first += mixed) {
    std::vector<SampleId> pool;
    for (int64_t p = first; p < std::min(first + mixed, int64_t(std::ssize(blocks))); ++p) {
      const std::vector<SampleId>& next = blocks[static_cast<size_t>(order.at(p))];
      pool.insert(pool.end(), next.begin(), next.end());
    }
    const RandomKey random(seed, epoch, first / mixed);
    const Permutation shuffle(std::ssize(pool),
                              {random.bits(kPoolShuffle), random.bits(kPoolShuffleFactor) | 1});
    for (int64_t p = 0; p < std::ssize(pool); ++p) {
      ids.push_back(pool[static_cast<size_t>(shuffle.at(p))]);
    }
  }
  return ids;
}

// For all numbers of samples up to 60, with the short block in every place.
TEST(BlockShuffledOrder, IsThatOfTables) {
  for (int64_t samples = 1; samples <= 60; ++samples) {
    for (const auto& [block, mixed] : {std::pair{1, 1}, {4, 3}, {7, 2}, {5, 1}, {1, 6}, {90, 3}}) {
      const SharedOrder order =
          block_shuffled_order({.samples = samples, .block = block, .mixed = mixed});
      for (int64_t epoch = 0; epoch < 10; ++epoch) {
        std::vector<SampleId> ids;
        for (const OrderedSample& sample : epoch_of(*order, 3, epoch)) ids.push_back(sample.id);
        ASSERT_EQ(ids, block_shuffled_by_tables(samples, block, mixed, 3, epoch))
            << samples << ": " << block << " x " << mixed << ", epoch " << epoch;
        std::sort(ids.begin(), ids.end());
        for (int64_t id = 0; id < samples; ++id) ASSERT_EQ(ids[static_cast<size_t>(id)], id);
      }
    }
  }
}

// The first block begins at another place in each epoch, and each pool has blocks from all over.
TEST(BlockShuffledOrder, BlocksAndPoolsAreOthersInEachEpoch) {
  constexpr int64_t kSamples = 16 * 64 * 20;
  const SharedOrder order = block_shuffled_order({.samples = kSamples});
  EXPECT_EQ(order->describe(), "shuffled by blocks of 16, 64 mixed");
  std::vector<int64_t> begins(16);
  int64_t parts = 0;  // of 20 equal parts of the source, those in the first pool
  constexpr int64_t kEpochs = 100;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const EpochKey key(1, epoch);
    std::set<SampleId> pool, seen;
    for (int64_t p = 0; p < 16 * 64; ++p) pool.insert(order->at(key, p).id);
    ASSERT_EQ(pool.size(), 16U * 64);
    for (const SampleId id : pool) {
      seen.insert(id / (16 * 64));
      if (!pool.contains((id + kSamples - 1) % kSamples)) ++begins[static_cast<size_t>(id % 16)];
    }
    parts += static_cast<int64_t>(seen.size());
  }
  // 64 blocks in 20 parts: all but 20 * 0.95^64 = 0.75 of them.
  EXPECT_NEAR(static_cast<double>(parts) / kEpochs, 19.25, 0.4);
  EXPECT_GE(std::ranges::count_if(begins, [](int64_t count) { return count > 0; }), 15);
}

// Within a pool, neighbours' distances are those of a uniform permutation: a third of its size.
TEST(BlockShuffledOrder, APoolIsShuffledAsAWhole) {
  constexpr int64_t kBlock = 16, kMixed = 64, kPool = kBlock * kMixed;
  const SharedOrder order = block_shuffled_order({.samples = kPool, .block = kBlock});
  double distance = 0;
  constexpr int64_t kEpochs = 50;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const auto samples = epoch_of(*order, 1, epoch);
    for (size_t p = 1; p < samples.size(); ++p) {
      distance += static_cast<double>(std::abs(samples[p].id - samples[p - 1].id));
    }
  }
  EXPECT_NEAR(distance / kEpochs / (kPool - 1) / kPool, 1.0 / 3, 0.01);
}

// Stored runs are resumed with these: the order must never change.
TEST(BlockShuffledOrder, KeepsItsOrder) {
  const SharedOrder order = block_shuffled_order({.samples = 1281167});
  const EpochKey key(42, 3);
  std::vector<SampleId> ids;
  for (const int64_t p : {0, 1, 2, 1281166}) ids.push_back(order->at(key, p).id);
  EXPECT_EQ(ids, (std::vector<SampleId>{208063, 883491, 903988, 830177}));
  // At the far end of what is allowed.
  const SharedOrder far = block_shuffled_order({.samples = kFar, .block = 3, .mixed = 1 << 20});
  EXPECT_EQ(far->at(key, kFar - 1).id, 947025612195);
}

TEST(BlockShuffledOrder, RefusesWhatMakesNoBlocks) {
  const auto problem = [](int64_t block, int64_t mixed) {
    return problem_of(
        [&] { block_shuffled_order({.samples = 9, .block = block, .mixed = mixed}); });
  };
  EXPECT_EQ(problem(0, 1), "block-shuffled order: block is 0, must be 1 to 2^20");
  EXPECT_EQ(problem(1, (1 << 20) + 1), "block-shuffled order: mixed is 1048577, must be 1 to 2^20");
  EXPECT_EQ(problem(1 << 20, 1 << 20), "nothing was thrown");
}

// The probability of each number, measured at the borders of its columns.
std::vector<double> probabilities(const AliasTable& table) {
  std::vector<double> found(static_cast<size_t>(table.columns()));
  for (int64_t column = 0; column < table.columns(); ++column) {
    uint64_t own = 0;  // sides below this pick the column's own number
    for (int bit = 63; bit >= 0; --bit) {
      const uint64_t more = own + (uint64_t{1} << bit);
      if (table.pick(column, more - 1) == column) own = more;
    }
    const double share = static_cast<double>(own) * 0x1p-64;
    const int64_t last = table.pick(column, ~uint64_t{0});
    found[static_cast<size_t>(column)] += last == column ? 1 : share;
    if (last != column) found[static_cast<size_t>(last)] += 1 - share;
  }
  for (double& each : found) each /= static_cast<double>(table.columns());
  return found;
}

TEST(AliasTable, HasTheProbabilitiesOfTheWeights) {
  std::vector<std::vector<double>> tables = {{5},
                                             {1, 0},
                                             {3, 0, 0},
                                             {1, 1, 1, 0},
                                             {0, 0, 1, 0, 2, 0},
                                             {1e308, 1e307},
                                             {1e-310, 2e-310},
                                             {1, 1e-12, 0, 1e12},
                                             drawn_weights(1000)};
  for (int zeros = 1; zeros < 40; ++zeros) {
    tables.push_back(std::vector<double>(static_cast<size_t>(zeros)));
    for (const double weight : {0.1, 0.2, 0.7, 1.0 / 3}) tables.back().push_back(weight);
  }
  for (const std::vector<double>& weights : tables) {
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (const double weight : weights) sum += weight / largest;
    const std::vector<double> found = probabilities(AliasTable(weights));
    for (size_t i = 0; i < weights.size(); ++i) {
      EXPECT_NEAR(found[i], weights[i] / largest / sum, 1e-14) << i << " of " << weights.size();
      if (weights[i] > 0) continue;
      EXPECT_EQ(found[i], 0) << i << " of " << weights.size();
    }
  }
}

TEST(WeightedOrder, DrawsIndependentlyByWeight) {
  const std::vector<double> weights = drawn_weights(40);
  const SharedOrder order = weighted_order(weights, {.length = 200000});
  std::vector<int64_t> counts(40);
  // Neighbours: whether each is one of the first 20 samples.
  std::vector<int64_t> pairs(4);
  const double low = std::accumulate(weights.begin(), weights.begin() + 20, 0.0) /
                     std::accumulate(weights.begin(), weights.end(), 0.0);
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    const std::vector<OrderedSample> samples = epoch_of(*order, 1, epoch);
    std::set<uint64_t> repeat_indexes;
    for (size_t p = 0; p < samples.size(); ++p) {
      ++counts[static_cast<size_t>(samples[p].id)];
      repeat_indexes.insert(samples[p].repeat_index);
      if (p % 2 == 0) continue;
      ++pairs[static_cast<size_t>(2 * (samples[p - 1].id < 20) + (samples[p].id < 20))];
    }
    EXPECT_EQ(repeat_indexes.size(), samples.size());
  }
  EXPECT_LT(excess(counts, weights), 5);
  EXPECT_LT(excess(pairs, {(1 - low) * (1 - low), (1 - low) * low, low * (1 - low), low * low}), 5);
}

// Among three samples, every ordered pair has the probability of two draws one after the other.
TEST(WeightedOrder, WithoutReplacementDrawsFromTheRestByWeight) {
  const std::vector<double> weights{1, 2, 0, 4};
  const SharedOrder order = weighted_order(weights, {.length = 2, .replacement = false});
  std::vector<int64_t> counts(16);
  std::vector<double> shares(16);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 4; ++j) {
      shares[4 * i + j] = i == j ? 0 : weights[i] / 7 * weights[j] / (7 - weights[i]);
    }
  }
  for (int64_t epoch = 0; epoch < 40000; ++epoch) {
    const std::vector<OrderedSample> samples = epoch_of(*order, 3, epoch);
    ++counts[static_cast<size_t>(4 * samples[0].id + samples[1].id)];
  }
  EXPECT_LT(excess(counts, shares), 5);
}

TEST(WeightedOrder, WithoutReplacementNoneComesTwice) {
  const std::vector<double> weights = drawn_weights(3000);
  const auto possible = static_cast<int64_t>(weights.size() / 5 * 4);
  for (const int64_t length : {int64_t{1}, int64_t{700}, possible}) {
    const SharedOrder order = weighted_order(weights, {.length = length, .replacement = false});
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::set<SampleId> ids;
      for (const OrderedSample& sample : epoch_of(*order, 3, epoch)) {
        ids.insert(sample.id);
        EXPECT_GT(weights[static_cast<size_t>(sample.id)], 0);
      }
      EXPECT_EQ(static_cast<int64_t>(ids.size()), length);
    }
  }
}

// Any thread gets the same, whichever epochs the others are in.
TEST(WeightedOrder, WithoutReplacementTablesAreSharedByThreads) {
  const std::vector<double> weights = drawn_weights(200);
  const WeightedOptions options{.length = 100, .replacement = false};
  std::vector<std::vector<OrderedSample>> expected;
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    expected.push_back(epoch_of(*weighted_order(weights, options), 3, epoch));
  }
  const SharedOrder shared = weighted_order(weights, options);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 200; ++i) {
        const int64_t epoch = (i / 10 + static_cast<int64_t>(t)) % 5, position = i * 7 % 100;
        const OrderedSample sample = shared->at(EpochKey(3, epoch), position);
        wrong[t] += sample != expected[static_cast<size_t>(epoch)][static_cast<size_t>(position)];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(ClassBalancedOrder, ClassesNeverDifferByMoreThanOne) {
  const std::vector<int32_t> labels = drawn_labels(60);  // 42, 12 and 6 of the classes 4, 0 and 9
  const SharedOrder order = class_balanced_order(labels, 50);
  std::map<int32_t, int64_t> counts{{0, 0}, {4, 0}, {9, 0}};
  std::map<int32_t, std::set<SampleId>> pass;
  const std::map<int32_t, size_t> members{{0, 12}, {4, 42}, {9, 6}};
  std::map<std::vector<int32_t>, int64_t> rounds;
  std::vector<int32_t> round;
  for (int64_t epoch = 0; epoch < 300; ++epoch) {
    for (const OrderedSample& sample : epoch_of(*order, 3, epoch)) {
      const int32_t label = labels[static_cast<size_t>(sample.id)];
      ++counts[label];
      const auto [least, most] = std::minmax({counts[0], counts[4], counts[9]});
      ASSERT_LE(most - least, 1);
      // Every member once before any comes again, also across epochs.
      ASSERT_TRUE(pass[label].insert(sample.id).second) << "epoch " << epoch;
      if (pass[label].size() == members.at(label)) pass[label].clear();
      round.push_back(label);
      if (round.size() == 3) {
        ++rounds[round];
        round.clear();
      }
    }
  }
  std::vector<int64_t> orders;
  for (const auto& [classes, count] : rounds) orders.push_back(count);
  ASSERT_EQ(orders.size(), 6U);
  EXPECT_LT(excess(orders, std::vector<double>(6, 1)), 5);
}

TEST(RepeatedOrder, ShowsEachSampleSeveralTimesInARow) {
  const SharedOrder order = repeated_order({.samples = 30, .repeats = 3});
  ASSERT_EQ(order->length(), 30);
  const SharedOrder shuffled = shuffled_order(30);
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    for (int64_t p = 0; p < 30; ++p) {
      const OrderedSample sample = order->at(EpochKey(1, epoch), p);
      EXPECT_EQ(sample.id, shuffled->at(EpochKey(1, epoch), p / 3).id);
      EXPECT_EQ(sample.repeat_index, static_cast<uint64_t>(p % 3));
    }
  }
  EXPECT_EQ(repeated_order({.samples = 30, .repeats = 3, .length = 90})->length(), 90);
}

TEST(SampleOrder, RefusesWhatCannotWorkWithTheNumbers) {
  const auto weighted = [](std::vector<double> weights, WeightedOptions options) {
    return problem_of([&] { weighted_order(weights, options); });
  };
  const auto blend = [](const BlendOptions& options) {
    return problem_of([&] { blend_order(options); });
  };
  const auto balanced = [](std::vector<int32_t> labels, int64_t length) {
    return problem_of([&] { class_balanced_order(labels, length); });
  };
  const double infinite = INFINITY;
  EXPECT_EQ(problem_of([] { shuffled_order(0); }),
            "shuffled order: samples is 0, must be 1 to 2^40");
  EXPECT_EQ(problem_of([] { sequential_order(kFar + 1); }),
            "sequential order: samples is 1099511627777, must be 1 to 2^40");
  EXPECT_EQ(problem_of([] { shuffled_order(kFar); }), "nothing was thrown");
  EXPECT_EQ(weighted({1, 2}, {}), "weighted order: length is 0, must be 1 to 2^40");
  EXPECT_EQ(weighted({1, -0.5}, {.length = 1}),
            "weighted order: weight 1 of 2 is -0.500000, must be a finite number, 0 or more");
  EXPECT_THAT(weighted({NAN}, {.length = 1}), HasSubstr("weight 0 of 1 is nan"));
  EXPECT_THAT(weighted({1, infinite}, {.length = 1}), HasSubstr("weight 1 of 2 is inf"));
  EXPECT_EQ(weighted({0, 0}, {.length = 1}),
            "weighted order: the sum of 2 weights is 0.000000, must be finite and above 0");
  EXPECT_THAT(weighted({1e308, 1e308}, {.length = 1}), HasSubstr("the sum of 2 weights is inf"));
  EXPECT_THAT(weighted({}, {.length = 1}), HasSubstr("the sum of 0 weights is 0"));
  EXPECT_EQ(weighted({1, 0, 2}, {.length = 3, .replacement = false}),
            "weighted order: length is 3, but only 2 of 3 weights are above 0, and without "
            "replacement none comes twice");
  EXPECT_EQ(balanced({0, 1, -1}, 5),
            "class_balanced order: the label of sample 2 is -1, must be 0 or more");
  EXPECT_EQ(balanced({}, 5), "class_balanced order: samples is 0, must be 1 to 2^40");
  EXPECT_EQ(balanced({1}, -5), "class_balanced order: length is -5, must be 1 to 2^40");
  EXPECT_EQ(problem_of([] { repeated_order({.samples = 3, .repeats = 0}); }),
            "repeated order: repeats is 0, must be at least 1");
  EXPECT_EQ(problem_of([] { repeated_order({.samples = 3, .repeats = 2, .length = 7}); }),
            "repeated order: length is 7, more than 3 samples x 2 repeats");
  EXPECT_EQ(blend({.sizes = {3, -4}, .schedule = {{0, {1, 1}}}, .length = 1}),
            "blend order: source 1 has -4 samples");
  EXPECT_EQ(blend({.sizes = {INT64_MAX, INT64_MAX}, .schedule = {{0, {1, 1}}}, .length = 1}),
            "blend order: samples is 2199023255552, must be 1 to 2^40");
  EXPECT_EQ(blend({.sizes = {}, .schedule = {{0, {}}}, .length = 1}),
            "blend order: samples is 0, must be 1 to 2^40");
  EXPECT_EQ(blend({.sizes = {3}, .schedule = {}, .length = 1}),
            "blend order: the schedule has no pieces, so no source has a weight");
  EXPECT_EQ(blend({.sizes = {3, 4}, .schedule = {{0, {1}}}, .length = 1}),
            "blend order: piece 0 of 1 has 1 weights for 2 sources");
  EXPECT_EQ(blend({.sizes = {3, 0}, .schedule = {{0, {1, 0.5}}}, .length = 1}),
            "blend order: piece 0 of 1: source 1 has weight 0.500000, but no samples");
  EXPECT_EQ(blend({.sizes = {3}, .schedule = {{5, {1}}}, .length = 1}),
            "blend order: piece 0 of 1 begins at position 5, must begin at 0");
  EXPECT_EQ(blend({.sizes = {3}, .schedule = {{0, {1}}, {9, {1}}, {9, {1}}}, .length = 1}),
            "blend order: piece 2 of 3 begins at position 9, must be after 9");
  EXPECT_EQ(blend({.sizes = {3}, .schedule = {{0, {1}}, {9, {0}}}, .length = 1}),
            "blend order: piece 1 of 2: the sum of 1 weights is 0.000000, must be finite and above "
            "0");
  EXPECT_EQ(blend({.sizes = {3, 0}, .schedule = {{0, {1, 0}}}, .length = 1}), "nothing was thrown");
}

TEST(SampleOrder, DescriptionsTellOrdersApart) {
  std::set<std::string> texts;
  const auto add = [&](const SharedOrder& order) {
    EXPECT_TRUE(texts.insert(order->describe()).second) << order->describe();
  };
  for (const NamedOrder& each : all_kinds()) add(each.order);
  const std::vector<double> weights{1, 2, 3}, swapped{2, 1, 3};
  add(weighted_order(weights, {.length = 3}));
  add(weighted_order(swapped, {.length = 3}));
  add(weighted_order(weights, {.length = 2}));
  add(weighted_order(weights, {.length = 3, .replacement = false}));
  add(class_balanced_order(std::vector<int32_t>{0, 0, 1}, 5));
  add(class_balanced_order(std::vector<int32_t>{0, 1, 1}, 5));
  add(class_balanced_order(std::vector<int32_t>{0, 1, 0}, 5));
  add(class_balanced_order(std::vector<int32_t>{0, 1, 0}, 6));
  add(repeated_order({.samples = 3, .repeats = 2}));
  add(repeated_order({.samples = 3, .repeats = 2, .length = 4}));
  add(blend_order({.sizes = {3, 4}, .schedule = {{0, {1, 1}}}, .length = 5}));
  add(blend_order({.sizes = {4, 3}, .schedule = {{0, {1, 1}}}, .length = 5}));
  add(blend_order({.sizes = {4, 3}, .schedule = {{0, {1, 2}}}, .length = 5}));
  add(blend_order({.sizes = {4, 3}, .schedule = {{0, {1, 2}}}, .length = 6}));
  for (const int64_t change : {7, 8}) {
    add(blend_order({.sizes = {4, 3}, .schedule = {{0, {1, 2}}, {change, {2, 1}}}, .length = 5}));
  }
}

TEST(SampleOrder, AppearanceZeroHasTheSeedItself) {
  EXPECT_EQ(repeat_seed(17, 0), 17U);
  std::set<uint64_t> seeds;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (uint64_t repeat_index = 0; repeat_index < 100; ++repeat_index) {
      EXPECT_TRUE(seeds.insert(repeat_seed(seed, repeat_index)).second);
    }
  }
}

}  // namespace
}  // namespace stoker
