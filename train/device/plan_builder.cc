#include "train/device/plan_builder.h"

#include "train/engine/dropout.h"

namespace stoker {

DeviceProgram build_device_program(const NetSpec& net, const PlanOptions& options,
                                   const DeviceTuning& tuning, const GradientLayout& layout,
                                   DeviceOps* ops, DeviceNormExchange* norms) {
  DeviceProgram program;
  DevicePlanBuilder(net, options, tuning, layout, ops, norms, program).build();
  return program;
}

void DevicePlanBuilder::layer(int index) {
  const OpKind kind = node(index).kind;
  layers_[index] = kind == OpKind::conv         ? make_device_conv(index)
                   : kind == OpKind::batch_norm ? make_device_norm(index)
                                                : make_device_head(index);
  layers_[index]->build_forward(*this);
}

void DevicePlanBuilder::activate(int index, int x, int y) {
  append("activation", 2 * value_bytes(index),
         [x, y, ops = ops_, kind = node(index).activation, count = count(index),
          type = held_.activations](const DeviceRun& run) {
           ops->activate(kind, count, type, run.at(x), run.at(y));
         });
}

void DevicePlanBuilder::activate_back(int index, int seen, int dy, int dx) {
  append("activation_back", 3 * value_bytes(index),
         [seen, dy, dx, ops = ops_, kind = node(index).activation, count = count(index),
          type = held_.activations](const DeviceRun& run) {
           ops->activate_backward(kind, count, type, run.at(seen), run.at(dy), run.at(dx));
         });
}

void DevicePlanBuilder::add(int index, int a, int b, int y) {
  append("add", 3 * value_bytes(index),
         [a, b, y, ops = ops_, kind = node(index).activation, count = count(index),
          type = held_.activations](const DeviceRun& run) {
           ops->add(count, type, kind, run.at(a), run.at(b), run.at(y));
         });
}

void DevicePlanBuilder::add_gradients(int index, int a, int b, int sum) {
  append("add_gradients", 3 * value_bytes(index),
         [a, b, sum, ops = ops_, count = count(index),
          type = held_.activations](const DeviceRun& run) {
           ops->add(count, type, Activation::none, run.at(a), run.at(b), run.at(sum));
         });
}

void DevicePlanBuilder::concat(int index, const std::vector<int>& parts, int y) {
  std::vector<ChannelsShape> shapes;
  int first = 0;
  for (const int input : inputs_of(node(index))) {
    const int channels = node(input).shape.channels;
    shapes.push_back({pixels(index), channels, channels, 0, node(index).shape.channels, first,
                      held_.activations});
    first += channels;
  }
  append("concat", 2 * value_bytes(index),
         [shapes = std::move(shapes), parts, y, ops = ops_](const DeviceRun& run) {
           for (size_t i = 0; i < parts.size(); ++i) {
             ops->copy_channels(shapes[i], run.at(parts[i]), run.at(y));
           }
         });
}

void DevicePlanBuilder::concat_back(int index, int part, int first, int dy, int dx) {
  const int channels = node(part).shape.channels;
  const ChannelsShape shape{pixels(index), channels, node(index).shape.channels, first,
                            channels,      0,        held_.activations};
  append("concat_back", 2 * value_bytes(part), [shape, dy, dx, ops = ops_](const DeviceRun& run) {
    ops->copy_channels(shape, run.at(dy), run.at(dx));
  });
}

void DevicePlanBuilder::dropout(const char* name, int index, int from, int to) {
  const NodeShape& shape = node(index).shape;
  const DropoutShape args{options().rows,
                          shape.channels,
                          static_cast<int64_t>(shape.height) * shape.width,
                          dropout_key(options().seed, node(index).node),
                          spec(index).rate,
                          held_.activations};
  append(name, 2 * value_bytes(index), [args, from, to, ops = ops_](const DeviceRun& run) {
    ops->dropout(args, run.position, run.at(from), run.at(to));
  });
}

PoolShape DevicePlanBuilder::pool_shape(int index) const {
  const NodeShape &in = node(node(index).input).shape, &out = node(index).shape;
  return {options().rows,      in.channels,
          in.height,           in.width,
          out.height,          out.width,
          spec(index).kernel,  spec(index).stride,
          spec(index).padding, node(index).kind == OpKind::adaptive_avg_pool,
          held_.activations};
}

void DevicePlanBuilder::pool(int index, int x, int y) {
  const PoolShape shape = pool_shape(index);
  const int64_t bytes = input_and_output_bytes(index);
  if (node(index).kind != OpKind::max_pool) {
    append("average_pool", bytes, [shape, x, y, ops = ops_](const DeviceRun& run) {
      ops->average_pool(shape, run.at(x), run.at(y));
    });
    return;
  }
  const int argmax = keep(index, count(index));
  append("max_pool", bytes + count(index), [shape, x, y, argmax, ops = ops_](const DeviceRun& run) {
    ops->max_pool(shape, run.at(x), run.at(y), run.at<uint8_t>(argmax));
  });
}

void DevicePlanBuilder::pool_back(int index, int dy, int dx) {
  const PoolShape shape = pool_shape(index);
  const int64_t bytes = input_and_output_bytes(index);
  if (node(index).kind != OpKind::max_pool) {
    append("average_pool_back", bytes, [shape, dy, dx, ops = ops_](const DeviceRun& run) {
      ops->average_pool_backward(shape, run.at(dy), run.at(dx));
    });
    return;
  }
  append("max_pool_back", bytes + count(index),
         [shape, dy, dx, argmax = kept(index), ops = ops_](const DeviceRun& run) {
           ops->max_pool_backward(shape, run.at(dy), run.at<uint8_t>(argmax), run.at(dx));
         });
}

PadShape DevicePlanBuilder::pad_shape(int index) const {
  const NodeShape &in = node(node(index).input).shape, &out = node(index).shape;
  return {options().rows, spec(index).stride, in.channels, in.height,        in.width,
          out.channels,   out.height,         out.width,   held_.activations};
}

void DevicePlanBuilder::pad_channels(int index, int x, int y) {
  append("pad_channels", input_and_output_bytes(index),
         [shape = pad_shape(index), x, y, ops = ops_](const DeviceRun& run) {
           ops->pad_channels(shape, run.at(x), run.at(y));
         });
}

void DevicePlanBuilder::pad_channels_back(int index, int dy, int dx) {
  append("pad_channels_back", input_and_output_bytes(index),
         [shape = pad_shape(index), dy, dx, ops = ops_](const DeviceRun& run) {
           ops->pad_channels_backward(shape, run.at(dy), run.at(dx));
         });
}

}  // namespace stoker
