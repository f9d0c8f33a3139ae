#include "train/device/tape_builder.h"

#include <algorithm>

namespace stoker {

DeviceTapeBuilder::DeviceTapeBuilder(const NetSpec& net, const DeviceTapeOptions& options,
                                     const DeviceLayout& layout, DeviceOps* ops, DeviceTape& tape)
    : net_(net),
      options_(options),
      layout_(layout),
      ops_(ops),
      tape_(tape),
      values_(tape.nodes.size(), -1),
      sums_(tape.nodes.size(), -1),
      contributions_(tape.nodes.size()) {}

int64_t DeviceTapeBuilder::pixels(int index) const {
  const NodeShape& shape = node(index).shape;
  return static_cast<int64_t>(options_.rows) * shape.height * shape.width;
}

bool DeviceTapeBuilder::is_for_norm(int index) const {
  return node(index).readers == 1 &&
         std::ranges::any_of(tape_.nodes, [&](const DeviceNode& reader) {
           return reader.kind == OpKind::batch_norm && reader.input == index;
         });
}

int DeviceTapeBuilder::new_buffer(int64_t bytes) {
  // Planned in units of what every operation may ask of a pointer.
  constexpr int64_t kAlignment = 256;
  const int now = static_cast<int>(tape_.steps.size());
  tape_.buffers.push_back({(bytes + kAlignment - 1) / kAlignment * kAlignment, now, now});
  sharers_.push_back(0);
  return static_cast<int>(tape_.buffers.size()) - 1;
}

int DeviceTapeBuilder::use(int buffer) {
  tape_.buffers[buffer].last_step = static_cast<int>(tape_.steps.size());
  return buffer;
}

int DeviceTapeBuilder::workspace(int64_t bytes) {
  tape_.workspace_bytes = std::max(tape_.workspace_bytes, bytes);
  return bytes > 0 ? new_buffer(bytes) : -1;
}

int DeviceTapeBuilder::define_value(int index) {
  values_[index] = new_buffer(bytes(index));
  return values_[index];
}

int DeviceTapeBuilder::share_value(int index, int buffer) {
  values_[index] = buffer;
  return use(buffer);
}

std::vector<int> DeviceTapeBuilder::take_gradient(int index, size_t most) {
  std::vector<int> buffers = std::move(contributions_[index]);
  contributions_[index].clear();
  while (buffers.size() > most) {
    const int a = use(buffers.back());
    buffers.pop_back();
    const int b = use(buffers.back());
    buffers.pop_back();
    int sum = owned(a) ? a : b;
    if (!owned(a) && !owned(b)) sum = new_buffer(bytes(index));
    append("add_gradients", 3 * bytes(index),
           [ops = ops_, numbers = count(index), type = options_.precision, a, b,
            sum](const DeviceRun& run) {
             ops->add(numbers, type, Activation::none, run.at(a), run.at(b), run.at(sum));
           });
    release(a);
    release(b);
    ++sharers_[sum];
    buffers.push_back(sum);
  }
  for (const int buffer : buffers) use(buffer);
  return buffers;
}

int DeviceTapeBuilder::new_gradient(int index) {
  const int buffer = new_buffer(bytes(index));
  contributions_[index].push_back(buffer);
  ++sharers_[buffer];
  return buffer;
}

void DeviceTapeBuilder::pass_gradient(int index, int buffer) {
  contributions_[index].push_back(buffer);
  ++sharers_[buffer];
}

void DeviceTapeBuilder::begin(int index, DeviceStepUse use, int tensor) {
  current_.node = index;
  current_.use = use;
  current_.tensor = tensor;
}

void DeviceTapeBuilder::append(const char* name, int64_t bytes,
                               std::function<void(const DeviceRun&)> run) {
  DeviceStep step = current_;
  step.name = name;
  step.bytes = bytes;
  step.run = std::move(run);
  tape_.steps.push_back(std::move(step));
}

void DeviceTapeBuilder::note(const std::string& implementation) {
  if (std::ranges::find(tape_.implementations, implementation) == tape_.implementations.end()) {
    tape_.implementations.push_back(implementation);
  }
}

}  // namespace stoker
