// Builds a NetSpec node by node. Every method that appends a node returns its index, which later
// nodes take as an input; node 0 is the input. A value of one function; errors are those of
// node_shapes(), which name the node.
#pragma once

#include <string>
#include <vector>

#include "train/model/net_spec.h"

namespace stoker {

class NetBuilder {
 public:
  NetBuilder(const std::string& name, Size input, int classes);

  // How the weights of the nodes that follow are drawn; at first as WeightInit::uniform.
  void init(WeightInit init, float deviation = 0, bool zero_bias = false);
  void loss(LossKind loss) { net_.loss = loss; }
  void gray_input();  // see NetSpec::input_channels; before the first node

  int conv(const std::string& name, int input, int out_channels, int kernel, int stride,
           int padding, bool bias = false);
  int conv(const std::string& name, int input, int out_channels, Size kernel, int stride,
           Size padding, bool bias = false);
  // A hidden linear layer with a bias over all values of its input, in the order (C, H, W).
  int fully_connected(const std::string& name, int input, int out_channels);
  int batch_norm(const std::string& name, int input, float eps, float momentum);
  int max_pool(int input, int kernel, int stride, int padding, bool ceil = false);
  int avg_pool(int input, int kernel, int stride, int padding);
  int adaptive_avg_pool(int input, Size output);
  int plain(OpKind kind, int input);  // relu, gelu, tanh, sigmoid
  int add(int input, int other);
  int concat(const std::vector<int>& inputs);
  int pad_channels(int input, int out_channels, int stride);
  int dropout(int input, float rate);
  // A head: the last one gives the logits; the others are auxiliary, with the weight of their loss.
  int linear(const std::string& name, int input, bool bias, float scale, float loss_weight = 1);

  const NodeShape& shape(int node) const { return shapes_[node]; }
  NetSpec finish();  // validates

 private:
  int append(NetNode node);
  NetNode weighted(OpKind kind, const std::string& name, int input) const;

  NetSpec net_;
  std::vector<NodeShape> shapes_;
  WeightInit init_ = WeightInit::uniform;
  float init_deviation_ = 0;
  bool zero_bias_ = false;
};

}  // namespace stoker
