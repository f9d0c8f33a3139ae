// Sources mixed by shares: every prefix has them, and every pass its samples.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "pipeline/order/share_split.h"
#include "pipeline/sample_order.h"
#include "tests/pipeline/order_support.h"

namespace stoker {
namespace {

std::vector<std::vector<double>> blends() {
  std::vector<std::vector<double>> all = {{1},
                                          {1, 1},
                                          {0.7, 0.3},
                                          {1, 2, 3},
                                          {1, 1, 1},
                                          {98, 1, 1},
                                          {0, 1, 0, 2},
                                          {0.5, 0.3, 0.15, 0.05},
                                          {1, 1e-3, 1e-6}};
  all.push_back(std::vector<double>(17, 1));
  all.emplace_back();
  for (int i = 0; i < 40; ++i) all.back().push_back(std::pow(1.7, i % 11) + i);
  return all;
}

TEST(ShareSplit, EveryPrefixHasTheShares) {
  for (const std::vector<double>& weights : blends()) {
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    const double bound = weights.size() <= 3 ? 1 : 2;
    const ShareSplit split(weights);
    std::vector<uint64_t> counts(weights.size());
    for (uint64_t p = 0; p < 20000; ++p) {
      const ShareSplit::Position place = split.at(p);
      const auto part = static_cast<size_t>(place.part);
      ASSERT_EQ(place.index, counts[part]++);
      ASSERT_GT(weights[part], 0);
      for (size_t k = 0; k < weights.size(); ++k) {
        const double exact = static_cast<double>(p + 1) * weights[k] / sum;
        ASSERT_LE(std::abs(static_cast<double>(counts[k]) - exact), bound)
            << "source " << k << " of " << weights.size() << " at " << p;
      }
      ASSERT_EQ(split.count(place.part, p + 1), counts[part]);
    }
  }
}

// Far from the beginning as near it: whole numbers do not drift.
TEST(ShareSplit, DoesNotDrift) {
  const ShareSplit split(std::vector<double>{7, 2, 1});
  constexpr uint64_t kPositions = uint64_t{10} << 58;
  EXPECT_EQ(split.count(0, kPositions), uint64_t{7} << 58);
  EXPECT_EQ(split.count(1, kPositions), uint64_t{2} << 58);
  EXPECT_EQ(split.count(2, kPositions), uint64_t{1} << 58);
  for (uint64_t p = 0; p < 1000; ++p) {
    const ShareSplit::Position near = split.at(p), far = split.at(kPositions + p);
    ASSERT_EQ(near.part, far.part);
    ASSERT_EQ(far.index, near.index + split.count(near.part, kPositions));
  }
}

TEST(BlendOrder, EverySourceHasItsShareAndItsPasses) {
  const std::vector<int64_t> sizes{500, 70, 1301};
  const std::vector<double> weights{0.5, 0.3, 0.2};
  const SharedOrder order =
      blend_order({.sizes = sizes, .schedule = {{0, weights}}, .length = 2003});
  const auto source_of = [&](SampleId id) { return id < 500 ? 0U : id < 570 ? 1U : 2U; };
  std::vector<std::set<SampleId>> pass(3);
  std::vector<int64_t> counts(3);
  int64_t position = 0;
  for (int64_t epoch = 0; epoch < 9; ++epoch) {
    std::vector<int64_t> of_epoch(3);
    for (const OrderedSample& sample : epoch_of(*order, 8, epoch)) {
      const size_t source = source_of(sample.id);
      ASSERT_TRUE(pass[source].insert(sample.id).second) << "epoch " << epoch;
      if (static_cast<int64_t>(pass[source].size()) == sizes[source]) pass[source].clear();
      ++counts[source];
      ++of_epoch[source];
      ++position;
      for (size_t k = 0; k < 3; ++k) {
        ASSERT_LE(
            std::abs(static_cast<double>(counts[k]) - static_cast<double>(position) * weights[k]),
            1);
      }
    }
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_NEAR(static_cast<double>(of_epoch[k]) / 2003, weights[k], 0.001);
    }
  }
}

// A pass over a source has another order than the one before, and than that of another source.
TEST(BlendOrder, PassesAndSourcesHaveOrdersOfTheirOwn) {
  const SharedOrder order =
      blend_order({.sizes = {1000, 1000}, .schedule = {{0, {1, 1}}}, .length = 2000});
  std::vector<std::vector<SampleId>> passes;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    passes.resize(passes.size() + 2);
    for (const OrderedSample& sample : epoch_of(*order, 1, epoch)) {
      const bool second = sample.id >= 1000;
      passes[passes.size() - (second ? 1 : 2)].push_back(sample.id % 1000);
    }
  }
  for (size_t a = 0; a < passes.size(); ++a) {
    ASSERT_EQ(passes[a].size(), 1000U);
    for (size_t b = 0; b < a; ++b) {
      int same = 0;  // about one, as in any two random orders
      for (size_t i = 0; i < 1000; ++i) same += passes[a][i] == passes[b][i];
      EXPECT_LT(same, 10) << a << " and " << b;
    }
  }
}

TEST(BlendOrder, AScheduleChangesTheSharesAtItsPositions) {
  const SharedOrder order =
      blend_order({.sizes = {1000, 2000},
                   .schedule = {{0, {1, 0}}, {150, {1, 1}}, {250, {0, 1}}, {370, {1, 3}}},
                   .length = 100});
  // Shares of the first source per 50 positions; each one's passes go on over the changes.
  const int64_t expected[] = {50, 50, 50, 25, 25, 0, 0};
  std::set<SampleId> seen;
  for (int64_t piece = 0; piece < 7; ++piece) {
    int64_t first = 0;
    for (int64_t p = 50 * piece; p < 50 * (piece + 1); ++p) {
      const OrderedSample sample = order->at(EpochKey(1, p / 100), p % 100);
      first += sample.id < 1000;
      EXPECT_TRUE(seen.insert(sample.id).second);
    }
    EXPECT_EQ(first, expected[piece]) << piece;
  }
  int64_t later = 0;
  for (int64_t p = 370; p < 1370; ++p) {
    later += order->at(EpochKey(1, p / 100), p % 100).id < 1000;
  }
  EXPECT_EQ(later, 250);
}

// The source of a position does not depend on what comes later in the schedule.
TEST(BlendOrder, ALaterPieceChangesNothingBefore) {
  const BlendOptions plain{.sizes = {10, 20}, .schedule = {{0, {1, 2}}}, .length = 33};
  BlendOptions changed = plain;
  changed.schedule.push_back({50, {2, 1}});
  const SharedOrder a = blend_order(plain), b = blend_order(changed);
  for (int64_t p = 0; p < 50; ++p) {
    EXPECT_EQ(a->at(EpochKey(1, p / 33), p % 33), b->at(EpochKey(1, p / 33), p % 33));
  }
  EXPECT_NE(a->describe(), b->describe());
}

}  // namespace
}  // namespace stoker
