#include "train/model/net_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "train/model/net_builder.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

NetSpec spoilt_net() {
  NetBuilder net("small", {8, 6}, 3);
  int x = net.conv("stem", 0, 4, 3, 2, 1, true);
  x = net.batch_norm("norm", x, 1e-5f, 0.1f);
  x = net.adaptive_avg_pool(net.plain(OpKind::relu, x), {1, 1});
  net.linear("fc", x, true, 1.0f);
  return net.finish();
}

TEST(NetSpecTest, ShapesFollowTheWindows) {
  const std::vector<NodeShape> shapes = node_shapes(spoilt_net());
  EXPECT_EQ(shapes[1].channels, 4);
  EXPECT_EQ(shapes[1].width, 4);
  EXPECT_EQ(shapes[1].height, 3);
  EXPECT_EQ(shapes.back().channels, 3);
}

TEST(NetSpecTest, TablesAreContiguousAndInOrder) {
  const std::vector<TensorInfo> table = parameter_table(spoilt_net());
  std::vector<std::string> names;
  int64_t offset = 0;
  for (const TensorInfo& info : table) {
    names.push_back(info.name);
    EXPECT_EQ(info.offset, offset);
    offset += info.count;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"stem.weight", "stem.bias", "norm.weight", "norm.bias",
                                             "fc.weight", "fc.bias"}));
  EXPECT_EQ(table[0].shape, (std::vector<int64_t>{4, 3, 3, 3}));
  EXPECT_EQ(total_count(table), 4 * 27 + 4 + 4 + 4 + 12 + 3);
  EXPECT_EQ(total_count(statistics_table(spoilt_net())), 8);
  EXPECT_EQ(statistics_table(spoilt_net())[1].name, "norm.running_var");
}

TEST(NetSpecTest, FlopsCountMultiplyAddsTwice) {
  EXPECT_EQ(forward_flops(spoilt_net()), 2.0 * (27 * 4 * 12 + 12));
}

std::string error_of_spoilt(const std::function<void(NetSpec&)>& spoil) {
  NetSpec net = spoilt_net();
  spoil(net);
  try {
    node_shapes(net);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(NetSpecTest, ErrorsNameTheNode) {
  EXPECT_THAT(error_of_spoilt([](NetSpec& n) {
                n.nodes[1].kernel = {20, 20};
              }),
              HasSubstr("node 1 'stem'"));
  EXPECT_THAT(error_of_spoilt([](NetSpec& n) { n.nodes[2].input = 2; }),
              HasSubstr("not an earlier node"));
  EXPECT_THAT(error_of_spoilt([](NetSpec& n) { n.nodes[5].out_channels = 4; }),
              HasSubstr("3 outputs"));
  EXPECT_THAT(error_of_spoilt([](NetSpec& n) { n.nodes[5].input = 3; }), HasSubstr("1x1 input"));
  EXPECT_THAT(error_of_spoilt([](NetSpec& n) { n.classes = 0; }), HasSubstr("must be positive"));
  EXPECT_THAT(error_of_spoilt([](NetSpec& n) {
                n.nodes[3].kind = OpKind::add;
                n.nodes[3].more_inputs = {0};
              }),
              HasSubstr("cannot add 4x3x4 and 3x6x8"));
}

}  // namespace
}  // namespace stoker
