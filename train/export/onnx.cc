// Field numbers and types are those of onnx.proto3 (github.com/onnx/onnx).
#include "train/export/onnx.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numbers>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "train/graph/lowering.h"

namespace stoker {
namespace {

// Protocol buffers (protobuf.dev, "Encoding"): enough for ONNX, without a library.

class ProtobufWriter {
 public:
  void integer(int field, int64_t value) {
    varint(tag(field, 0));
    varint(static_cast<uint64_t>(value));
  }
  void number(int field, float value) {
    varint(tag(field, 5));
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.append(bytes, sizeof value);
  }
  void text(int field, std::string_view value) {
    varint(tag(field, 2));
    varint(value.size());
    bytes_.append(value);
  }
  void message(int field, const ProtobufWriter& value) { text(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  static uint64_t tag(int field, int kind) { return static_cast<uint64_t>(field) << 3 | kind; }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

using Integers = std::vector<int64_t>;

constexpr int64_t kIrVersion = 8, kOpset = 17;
constexpr int64_t kFloatType = 1, kIntegerType = 7;  // TensorProto.DataType
constexpr size_t kMaxModelBytes = size_t{1} << 31;

ProtobufWriter attribute(const std::string& name, const Integers& values) {
  ProtobufWriter out;
  out.text(1, name);
  for (const int64_t value : values) out.integer(8, value);
  out.integer(20, 7);  // INTS
  return out;
}

ProtobufWriter attribute(const std::string& name, int64_t value) {
  ProtobufWriter out;
  out.text(1, name);
  out.integer(3, value);
  out.integer(20, 2);  // INT
  return out;
}

ProtobufWriter attribute(const std::string& name, float value) {
  ProtobufWriter out;
  out.text(1, name);
  out.number(2, value);
  out.integer(20, 1);  // FLOAT
  return out;
}

ProtobufWriter tensor(const std::string& name, const Integers& shape, int64_t type,
                      std::string_view bytes) {
  ProtobufWriter out;
  for (const int64_t extent : shape) out.integer(1, extent);
  out.integer(2, type);
  out.text(8, name);
  out.text(9, bytes);
  return out;
}

template <typename Number>
std::string_view raw_data(std::span<const Number> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

// The input or the output: the first extent is free.
ProtobufWriter value_info(const std::string& name, const Integers& extents) {
  ProtobufWriter batch, shape, of_tensor, type, out;
  batch.text(2, "N");
  shape.message(1, batch);
  for (const int64_t extent : extents) {
    ProtobufWriter dimension;
    dimension.integer(1, extent);
    shape.message(1, dimension);
  }
  of_tensor.integer(1, kFloatType);
  of_tensor.message(2, shape);
  type.message(1, of_tensor);
  out.text(1, name);
  out.message(2, type);
  return out;
}

// Row y averages the pixels of window y of an adaptive pool: (out, in).
std::vector<float> averaging_matrix(int in, int out) {
  std::vector<float> matrix(static_cast<size_t>(in) * out, 0.0f);
  for (int y = 0; y < out; ++y) {
    const int begin = y * in / out, end = ((y + 1) * in + out - 1) / out;
    for (int x = begin; x < end; ++x) matrix[y * in + x] = 1.0f / static_cast<float>(end - begin);
  }
  return matrix;
}

std::vector<float> transposed(const std::vector<float>& matrix, int rows, int columns) {
  std::vector<float> result(matrix.size());
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) result[c * rows + r] = matrix[r * columns + c];
  }
  return result;
}

// Builds the graph node by node. Values are named after the node that makes them: "node12".
class OnnxGraph {
 public:
  OnnxGraph(const NetSpec& net, const LoadedModel& model)
      : model_(model),
        net_(net),
        nodes_(lower(net_, FusionRules{}, false)),
        parameters_(parameter_table(net_)),
        statistics_(statistics_table(net_)),
        values_(nodes_.size()) {}

  ProtobufWriter build() {
    values_[0] = "input";
    for (size_t i = 1; i < nodes_.size(); ++i) {
      values_[i] = append(static_cast<int>(i));
      if (i + 1 < nodes_.size()) activate(static_cast<int>(i));
    }
    graph_.text(2, net_.name);
    graph_.message(11,
                   value_info("input", {net_.input_channels, net_.input.height, net_.input.width}));
    graph_.message(12, value_info(values_.back(), {net_.classes}));
    return graph_;
  }

 private:
  const NetNode& spec(int i) const { return net_.nodes[nodes_[i].node]; }
  const NodeShape& in_shape(int i) const { return nodes_[nodes_[i].input].shape; }
  const std::string& in(int i) const { return values_[nodes_[i].input]; }

  // Appends an operator; returns the name of its output.
  std::string op(const char* type, const std::vector<std::string>& inputs,
                 const std::vector<ProtobufWriter>& attributes = {}) {
    const std::string name = "node" + std::to_string(count_++);
    emit(type, inputs, name, attributes);
    return name;
  }

  void emit(const char* type, const std::vector<std::string>& inputs, const std::string& output,
            const std::vector<ProtobufWriter>& attributes) {
    ProtobufWriter node;
    for (const std::string& input : inputs) node.text(1, input);
    node.text(2, output);
    node.text(3, output + "_" + type);
    node.text(4, type);
    for (const ProtobufWriter& each : attributes) node.message(5, each);
    graph_.message(1, node);
  }

  std::string floats(const std::string& name, const Integers& shape, std::span<const float> v) {
    graph_.message(5, tensor(name, shape, kFloatType, raw_data(v)));
    return name;
  }
  std::string constant(const Integers& shape, const std::vector<float>& values) {
    return floats("constant" + std::to_string(count_++), shape, values);
  }
  std::string integers(const Integers& values) {
    const std::string name = "constant" + std::to_string(count_++);
    graph_.message(5, tensor(name, {static_cast<int64_t>(values.size())}, kIntegerType,
                             raw_data(std::span<const int64_t>(values))));
    return name;
  }

  std::string stored(const std::vector<TensorInfo>& table, const std::vector<float>& values,
                     const std::string& name) {
    const auto found = std::ranges::find(table, name, &TensorInfo::name);
    return floats(name, found->shape,
                  std::span(values).subspan(static_cast<size_t>(found->offset),
                                            static_cast<size_t>(found->count)));
  }
  std::string parameter(int i, const char* what) {
    return stored(parameters_, model_.parameters, spec(i).name + "." + what);
  }
  std::string statistic(int i, const char* what) {
    return stored(statistics_, model_.statistics, spec(i).name + "." + what);
  }

  std::string append(int i) {
    switch (nodes_[i].kind) {
      case OpKind::conv:
        return spec(i).flat ? product(i, 1.0f) : conv(i);
      case OpKind::batch_norm:
        return op("BatchNormalization",
                  {in(i), parameter(i, "weight"), parameter(i, "bias"),
                   statistic(i, "running_mean"), statistic(i, "running_var")},
                  {attribute("epsilon", spec(i).eps)});
      case OpKind::max_pool:
        return op("MaxPool", {in(i)}, window(i));
      case OpKind::avg_pool: {
        std::vector<ProtobufWriter> attributes = window(i);
        attributes.push_back(attribute("count_include_pad", int64_t{1}));
        return op("AveragePool", {in(i)}, attributes);
      }
      case OpKind::adaptive_avg_pool:
        return adaptive_pool(i);
      case OpKind::add:
        return op("Add", {in(i), values_[nodes_[i].more_inputs[0]]});
      case OpKind::concat: {
        std::vector<std::string> inputs;
        for (const int input : inputs_of(nodes_[i])) inputs.push_back(values_[input]);
        return op("Concat", inputs, {attribute("axis", int64_t{1})});
      }
      case OpKind::pad_channels:
        return pad_channels(i);
      case OpKind::linear:
        return product(i, spec(i).scale);
      default:
        return in(i);  // an activation, which activate() appends
    }
  }

  void activate(int i) {
    const std::string x = values_[i];
    switch (nodes_[i].activation) {
      case Activation::none:
        return;
      case Activation::relu:
        values_[i] = op("Relu", {x});
        return;
      case Activation::tanh:
        values_[i] = op("Tanh", {x});
        return;
      case Activation::sigmoid:
        values_[i] = op("Sigmoid", {x});
        return;
      case Activation::gelu: {  // x / 2 * (1 + erf(x / sqrt(2)))
        const std::string half = constant({}, {0.5f}), one = constant({}, {1.0f});
        const std::string root = constant({}, {static_cast<float>(1 / std::numbers::sqrt2)});
        const std::string erf = op("Erf", {op("Mul", {x, root})});
        values_[i] = op("Mul", {op("Mul", {x, half}), op("Add", {erf, one})});
        return;
      }
    }
  }

  // Kernel, strides and pads. Pads after the image are as many as the last window needs, which is
  // also what PyTorch's ceil_mode does.
  std::vector<ProtobufWriter> window(int i) const {
    const NetNode& n = spec(i);
    const NodeShape &from = in_shape(i), &to = nodes_[i].shape;
    const auto after = [&](int in_size, int out_size, int kernel, int before) {
      return std::max(0, (out_size - 1) * n.stride + kernel - in_size - before);
    };
    return {
        attribute("kernel_shape", Integers{n.kernel.height, n.kernel.width}),
        attribute("strides", Integers{n.stride, n.stride}),
        attribute("pads", Integers{n.padding.height, n.padding.width,
                                   after(from.height, to.height, n.kernel.height, n.padding.height),
                                   after(from.width, to.width, n.kernel.width, n.padding.width)})};
  }

  std::string conv(int i) {
    std::vector<std::string> inputs{in(i), parameter(i, "weight")};
    if (spec(i).bias) inputs.push_back(parameter(i, "bias"));
    return op("Conv", inputs, window(i));
  }

  // A linear layer: factor * (x * weight^T + bias).
  std::string product(int i, float factor) {
    std::vector<std::string> inputs{op("Flatten", {in(i)}), parameter(i, "weight")};
    if (spec(i).bias) inputs.push_back(parameter(i, "bias"));
    const std::vector<ProtobufWriter> attributes{
        attribute("alpha", factor), attribute("beta", factor), attribute("transB", int64_t{1})};
    if (i + 1 < static_cast<int>(nodes_.size())) return op("Gemm", inputs, attributes);
    emit("Gemm", inputs, "logits", attributes);
    return "logits";
  }

  std::string adaptive_pool(int i) {
    const NodeShape &from = in_shape(i), &to = nodes_[i].shape;
    if (to.height == 1 && to.width == 1) return op("GlobalAveragePool", {in(i)});
    // Two products: one averages lines, the other columns. ONNX has no pool of uneven windows.
    const std::string down =
        constant({to.height, from.height}, averaging_matrix(from.height, to.height));
    const std::string across =
        constant({from.width, to.width},
                 transposed(averaging_matrix(from.width, to.width), to.width, from.width));
    return op("MatMul", {down, op("MatMul", {in(i), across})});
  }

  std::string pad_channels(int i) {
    const NodeShape &from = in_shape(i), &to = nodes_[i].shape;
    const int64_t stride = spec(i).stride;
    const std::string taken =
        op("Slice", {in(i), integers({0, 0}), integers({from.height, from.width}), integers({2, 3}),
                     integers({stride, stride})});
    return op("Pad", {taken, integers({0, 0, 0, 0, 0, to.channels - from.channels, 0, 0})});
  }

  const LoadedModel& model_;
  const NetSpec& net_;
  const std::vector<FusedNode> nodes_;
  const std::vector<TensorInfo> parameters_, statistics_;
  std::vector<std::string> values_;  // per node: the name of its output
  ProtobufWriter graph_;
  int count_ = 0;
};

void add_metadata(ProtobufWriter& model, const std::string& key, const std::string& value) {
  ProtobufWriter entry;
  entry.text(1, key);
  entry.text(2, value);
  model.message(14, entry);
}

}  // namespace

std::string onnx_bytes(const NetSpec& net, const LoadedModel& loaded) {
  const Recipe& recipe = loaded.info.recipe;
  ProtobufWriter opset, model;
  opset.text(1, "");
  opset.integer(2, kOpset);
  model.integer(1, kIrVersion);
  model.text(2, "stoker");
  model.message(7, OnnxGraph(net, loaded).build());
  model.message(8, opset);
  add_metadata(model, "model", recipe.name);
  add_metadata(model, "classes", nlohmann::json(loaded.info.class_names).dump());
  add_metadata(model, "mean", nlohmann::json(recipe.mean).dump());
  add_metadata(model, "stddev", nlohmann::json(recipe.stddev).dump());
  if (model.bytes().size() >= kMaxModelBytes) {
    throw std::runtime_error("ONNX: the model has " + std::to_string(model.bytes().size()) +
                             " bytes, and the format holds 2 GiB");
  }
  return model.bytes();
}

}  // namespace stoker
