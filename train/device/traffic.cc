#include "train/device/traffic.h"

#include <algorithm>

#include "train/device/engine_memory.h"
#include "train/device/tape.h"

namespace stoker {
namespace {

class Counter {
 public:
  void add(const std::string& step, int64_t bytes) {
    auto found = std::ranges::find(counted_, step, &DeviceTraffic::step);
    if (found == counted_.end()) found = counted_.insert(found, DeviceTraffic{step, 0, 0});
    ++found->count;
    found->bytes += bytes;
  }
  std::vector<DeviceTraffic> take() { return std::move(counted_); }

 private:
  std::vector<DeviceTraffic> counted_;
};

int64_t input_bytes(const DeviceTape& tape, const DeviceTapeOptions& options) {
  const NodeShape& shape = tape.nodes[0].shape;
  const int64_t pixels = static_cast<int64_t>(options.rows) * shape.height * shape.width;
  const int64_t number = options.precision == Precision::bf16 ? 2 : 4;
  return pixels * (3 + shape.channels * number);
}

int64_t convolution_weights(const DeviceLayout& layout) {
  int64_t count = 0;
  for (const TensorChunk& chunk : layout.chunks(true)) count += chunk.count;
  return count;
}

}  // namespace

std::vector<DeviceTraffic> planned_traffic(const NetSpec& net, const EngineOptions& options,
                                           const DeviceTuning& tuning) {
  constexpr int64_t kFloat = sizeof(float), kBf16 = 2;
  const DeviceLayout layout(net, tuning.input_channels);
  const DeviceTapeOptions tape_options = device_tape_options(options, tuning, true);
  const DeviceTape tape = build_device_tape(net, tape_options, layout, nullptr);
  const bool narrow = options.precision == Precision::bf16;
  const int64_t part = layout.part_floats() * kFloat;
  const int shards = options.rows / options.micro_batch_rows;
  Counter counter;
  for (int shard = 0; shard < shards; ++shard) {
    counter.add("input", input_bytes(tape, tape_options));
    for (const DeviceStep& step : tape.steps) counter.add(step.name, step.bytes);
    if (narrow) counter.add("widen", convolution_weights(layout) * (kBf16 + kFloat));
    // The first shard's part is copied, the others' are added to it.
    if (shards > 1) counter.add("add_shard", (shard == 0 ? 2 : 3) * part);
  }
  // The sums are read to see whether they are finite, then gradient, weight and momentum are read,
  // and the last two and the weights' bf16 copy are written.
  const int64_t numbers = layout.parameter_floats();
  counter.add("update", part + numbers * (5 * kFloat + (narrow ? kBf16 : 0)));
  return counter.take();
}

}  // namespace stoker
