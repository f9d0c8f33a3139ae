#include "train/device/plan_builder.h"

namespace stoker {
namespace {

class DeviceConcatSteps final : public DeviceSteps {
 public:
  explicit DeviceConcatSteps(int index) : index_(index) {}

  void build_forward(DevicePlanBuilder& builder) override {
    struct Part {
      ChannelsShape shape;
      int x;  // buffer
    };
    std::vector<Part> parts;
    int first = 0;
    for (const int input : inputs_of(builder.node(index_))) {
      const int channels = builder.node(input).shape.channels;
      ChannelsShape shape = shape_of(builder, channels);
      shape.source_channels = channels;
      shape.target_channels = builder.node(index_).shape.channels;
      shape.to = first;
      parts.push_back({shape, builder.value(input)});
      first += channels;
    }
    const int y = builder.define_value(index_);
    builder.append("concat", 2 * builder.value_bytes(index_),
                   [parts = std::move(parts), y, ops = builder.ops()](const DeviceRun& run) {
                     for (const Part& part : parts)
                       ops->copy_channels(part.shape, run.at(part.x), run.at(y));
                   });
  }

  void build_backward(DevicePlanBuilder& builder) override {
    const int dy = builder.take_gradient(index_, 1)[0];
    int first = 0;
    for (const int input : inputs_of(builder.node(index_))) {
      const int channels = builder.node(input).shape.channels;
      ChannelsShape shape = shape_of(builder, channels);
      shape.source_channels = builder.node(index_).shape.channels;
      shape.from = first;
      shape.target_channels = channels;
      first += channels;
      if (!builder.wants_gradient(input)) continue;
      builder.read(dy);
      const int dx = builder.new_gradient(input);
      builder.append("concat_back", 2 * builder.value_bytes(input),
                     [shape, dy, dx, ops = builder.ops()](const DeviceRun& run) {
                       ops->copy_channels(shape, run.at(dy), run.at(dx));
                     });
    }
    builder.release(dy);
  }

 private:
  ChannelsShape shape_of(const DevicePlanBuilder& builder, int channels) const {
    ChannelsShape shape;
    shape.pixels = builder.pixels(index_);
    shape.channels = channels;
    shape.type = builder.held().activations;
    return shape;
  }

  const int index_;
};

}  // namespace

std::unique_ptr<DeviceSteps> make_device_concat(int index) {
  return std::make_unique<DeviceConcatSteps>(index);
}

}  // namespace stoker
