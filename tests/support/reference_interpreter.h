// The interpreter of the reference net: one value and one gradient per node, in double precision.
// Values; one thread.
#pragma once

#include <vector>

#include "tests/support/reference_net.h"

namespace stoker::reference {

using Values = std::vector<double>;

struct Tensor {  // (rows, C, H, W)
  int rows = 0;
  NodeShape shape;
  Values v;

  Tensor() = default;
  Tensor(int r, const NodeShape& s)
      : rows(r), shape(s), v(static_cast<size_t>(r) * s.channels * s.height * s.width, 0.0) {}
  size_t at(int n, int c, int y, int x) const {
    return ((static_cast<size_t>(n) * shape.channels + c) * shape.height + y) * shape.width + x;
  }
  int pixels() const { return shape.height * shape.width; }
};

template <typename Visit>  // visit(n, c, y, x)
void for_each(const Tensor& t, Visit visit) {
  for (int n = 0; n < t.rows; ++n) {
    for (int c = 0; c < t.shape.channels; ++c) {
      for (int y = 0; y < t.shape.height; ++y) {
        for (int x = 0; x < t.shape.width; ++x) visit(n, c, y, x);
      }
    }
  }
}

template <typename Visit>  // visit(ky, kx, y, x) for the taps inside the picture
void for_each_tap(const NetNode& node, const NodeShape& in, int out_y, int out_x, Visit visit) {
  for (int ky = 0; ky < node.kernel.height; ++ky) {
    for (int kx = 0; kx < node.kernel.width; ++kx) {
      const int y = out_y * node.stride + ky - node.padding.height;
      const int x = out_x * node.stride + kx - node.padding.width;
      if (y >= 0 && y < in.height && x >= 0 && x < in.width) visit(ky, kx, y, x);
    }
  }
}

struct NormMoments {
  Values mean, variance;
};

class ReferenceInterpreter {
 public:
  ReferenceInterpreter(const NetSpec& net, const Values& parameters, const ReferenceInput& input,
                       const Values* running)
      : net_(net),
        parameters_(parameters),
        input_(input),
        running_(running),
        shapes_(node_shapes(net)),
        table_(parameter_table(net)),
        statistics_(statistics_table(net)),
        values_(net.nodes.size()),
        gradients_(net.nodes.size()),
        moments_(net.nodes.size()),
        parameter_gradients_(parameters.size(), 0.0) {}

  void forward() {
    for (size_t i = 0; i < net_.nodes.size(); ++i) {
      values_[i] = Tensor(input_.rows, shapes_[i]);
      forward_node(static_cast<int>(i));
    }
  }

  // Returns the loss of a head, without its weight.
  double loss(int head, Values* gradient) const;
  double last_loss() const { return loss(static_cast<int>(net_.nodes.size()) - 1, nullptr); }
  double weighted_loss() const;  // of all heads
  void backward();

  const Values& logits() const { return values_.back().v; }
  const Values& parameter_gradients() const { return parameter_gradients_; }
  Values batch_statistics() const;

 private:
  int64_t offset(int node, ParameterKind kind) const {
    for (const TensorInfo& info : table_) {
      if (info.node == node && info.kind == kind) return info.offset;
    }
    return -1;
  }
  int64_t statistics_offset(int node) const {
    for (const TensorInfo& info : statistics_) {
      if (info.node == node) return info.offset;
    }
    return -1;
  }
  int64_t weight_at(int64_t base, const NetNode& node, int channels, int o, int c, int ky,
                    int kx) const {
    const int64_t filter = static_cast<int64_t>(o) * channels + c;
    return base + (filter * node.kernel.height + ky) * node.kernel.width + kx;
  }

  void load(Tensor& out) const;
  void forward_node(int i);
  void backward_node(int i);
  void conv_forward(int i);
  void conv_backward(int i);
  void norm_forward(int i);
  void norm_backward(int i);
  void max_pool(int i, bool back);
  void average_window(int i, bool back);
  void average_adaptive(int i, bool back);
  void concat(int i, bool back);
  void dropout(int i, bool back);
  void pad_channels(int i, bool back);
  void linear_forward(int i);
  void linear_backward(int i);

  const NetSpec& net_;
  const Values& parameters_;
  const ReferenceInput& input_;
  const Values* running_;  // evaluation mode if not null
  const std::vector<NodeShape> shapes_;
  const std::vector<TensorInfo> table_, statistics_;
  std::vector<Tensor> values_, gradients_;
  std::vector<NormMoments> moments_;
  Values parameter_gradients_;
};

}  // namespace stoker::reference
