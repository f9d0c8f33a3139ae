// Tests of the bytes that a step moves, counted by hand for a small net.
#include <gtest/gtest.h>

#include <map>

#include "tests/train/engine_fixture.h"
#include "train/device/profile.h"
#include "train/model/net_builder.h"

namespace stoker {
namespace {

std::map<std::string, DeviceTraffic> by_step(const NetSpec& net, const EngineOptions& options) {
  std::map<std::string, DeviceTraffic> table;
  for (const DeviceTraffic& each : planned_traffic(net, options, {})) table[each.step] = each;
  return table;
}

// A stem, a block with a shortcut, the head.
NetSpec block_net() {
  NetBuilder net("block", {8, 4}, 16);
  const int stem = net.conv("stem", 0, 16, 3, 1, 1);
  const int left = net.plain(OpKind::relu, net.batch_norm("n0", stem, 1e-5f, 0.1f));
  const int right = net.batch_norm("n1", net.conv("c1", left, 16, 3, 1, 1), 1e-5f, 0.1f);
  const int sum = net.plain(OpKind::relu, net.add(right, left));
  net.linear("fc", net.adaptive_avg_pool(sum, {1, 1}), true, 1.0f);
  return net.finish();
}

TEST(DeviceTrafficTest, ABlockIsWhatOneCountsByHand) {
  const int64_t rows = 4, pixels = rows * 8 * 4;
  const int64_t value = pixels * 16 * 2;  // of an activation, bytes
  auto table = by_step(block_net(), engine_options(4, 4, 1, Precision::bf16));
  // The padded input has 8 channels.
  EXPECT_EQ(table["input"].bytes, pixels * (3 + 8 * 2));
  const int64_t stem_weights = 16 * 9 * 8 * 2, weights = 16 * 9 * 16 * 2;
  const int64_t convolutions = pixels * 8 * 2 + stem_weights + value + 2 * value + weights;
  EXPECT_EQ(table["conv"].bytes, convolutions);
  EXPECT_EQ(table["conv"].count, 2);
  EXPECT_EQ(table["conv_weights"].bytes, convolutions);
  EXPECT_EQ(table["conv_data"].bytes, 2 * value + weights);  // without the image's gradient
  const int64_t mask = pixels * 16 / 8;  // a bit per value, of the ReLU after the addition
  // Each norm reads x for the sums, and x and (one of them) the residual for y, and writes y.
  EXPECT_EQ(table["norm"].bytes, (3 + 4) * value + mask);
  // n1 reads x, the gradient and the mask, writes the residual's gradient, reads x and that
  // gradient, and writes dx. n0 reads x and both gradients twice, and writes dx.
  EXPECT_EQ(table["norm_back"].bytes, (3 + 3) * value + mask + (6 + 1) * value);
  EXPECT_EQ(table.count("add_gradients"), 0u);
  EXPECT_EQ(table["average_pool"].bytes, value + rows * 16 * 2);
  EXPECT_EQ(table["cast_to_fp32"].bytes, (stem_weights + weights) / 2 * 6);
}

TEST(DeviceTrafficTest, MicroBatchesAreAddedUpAndFp32IsTwiceAsLarge) {
  const NetSpec net = block_net();
  auto one = by_step(net, engine_options(4, 4, 1, Precision::bf16));
  auto two = by_step(net, engine_options(8, 4, 1, Precision::bf16));
  EXPECT_EQ(two["norm_back"].bytes, 2 * one["norm_back"].bytes);
  EXPECT_EQ(two["update"].bytes, one["update"].bytes);
  EXPECT_GT(two["add_micro_batch"].bytes, 0);
  auto wide = by_step(net, engine_options(4, 4, 1, Precision::fp32));
  EXPECT_EQ(wide["norm_back"].bytes, 2 * one["norm_back"].bytes);
  EXPECT_EQ(wide.count("cast_to_fp32"), 0u);
}

}  // namespace
}  // namespace stoker
