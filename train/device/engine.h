// An Engine on a device's operations: everything is queued on one stream, nothing waits for the
// device but totals_of(), forward(), read() and write(). Shards run one after the other in one
// arena and leave their sum as the only part. After the first step (and the first after a thaw),
// forward and backward are a captured graph (one per bucket, where gradients are reduced in
// buckets), and so is the update: what changes from step to step lies in device memory.
// Owner: the trainer's replica; one thread calls. Internal: callers see train/engine/engine.h and
// train/cuda/engine.h.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/device/buckets.h"
#include "train/device/engine_memory.h"
#include "train/device/engine_rings.h"
#include "train/device/tape.h"
#include "train/engine/engine.h"

namespace stoker {

using DeviceOpsFactory = std::function<std::unique_ptr<DeviceOps>(Device&, Stream&)>;

struct DeviceStepTime {
  std::string step;   // "conv_weights", "norm_back"
  std::string where;  // prefix of its parameters: "layer1.0.conv1"; "" if it has none
  NodeShape shape;    // of the node's output, one row
  double flops = 0;   // of convolutions
  int64_t bytes = 0;  // read and written in memory, as traffic.h counts
  double ms = 0;
};

class DeviceEngine final : public Engine {
 public:
  // Throws std::invalid_argument for options that do not fit, std::runtime_error if the device's
  // memory does not hold it, naming the largest batch that fits.
  DeviceEngine(const NetSpec& net, const EngineOptions& options, const DeviceTuning& tuning,
               Device& device, const DeviceOpsFactory& make_ops);
  ~DeviceEngine() override;

  const NetSpec& net() const override { return net_; }
  Precision precision() const override { return options_.precision; }
  void expect_frozen(std::span<const TensorUpdate> tensors) override;
  Stream* stream() override { return stream_.get(); }
  void forward_backward(const BatchRows& batch, const Mix& mix) override;
  bool reduce_in_buckets(int64_t bytes, std::function<void(PartRange)> ready) override;
  int64_t part_floats() const override { return layout_.part_floats(); }
  std::span<const float* const> parts() const override { return {&part_, 1}; }
  std::span<float> reduced() override;
  void update(const UpdateArgs& args) override;
  StepTotals totals() override { return totals_of(updates_ - 1); }
  StepTotals totals_of(int64_t update) override;
  int totals_lag() const override { return kLag; }
  void blend_average(float decay, bool pull) override;
  void forward(const BatchRows& batch, const View& view, bool averaged,
               std::span<float> logits) override;
  void read(StateKind kind, std::span<float> values) const override;
  void write(StateKind kind, std::span<const float> values) override;
  int64_t planned_bytes() const override;
  std::string describe_memory() const override;
  std::vector<std::string> implementations() const override;
  std::string warning() const override;
  // Times of a shard's steps, one after the other, on average of some runs; what stands in parts()
  // afterwards means nothing. With pauses between the steps: their sum is more than a step takes.
  std::vector<DeviceStepTime> profile(int runs);

 private:
  static constexpr int kLag = 4;  // updates: what the host may be late by
  // Which weights the narrow copies hold.
  enum class Loaded : uint8_t { nothing, parameters, average };

  void build_tapes();
  void allocate();
  void load_weights(bool averaged);
  DeviceRun run_of(const DeviceTape& tape, bool averaged) const;
  void load_shard(const BatchRows& batch, int shard);
  void run_bucket(const DeviceBucket& bucket);
  void add_shard(int shard, PartRange range);
  std::unique_ptr<DeviceGraph> capture(const std::function<void()>& work);
  void captured(std::unique_ptr<DeviceGraph>& graph, bool ready, const std::function<void()>& work);
  void ensure_average();
  float* state(StateKind kind) const;
  bool is_statistics(StateKind kind) const;
  void to_host(const void* device, void* host, int64_t bytes) const;
  void to_device(const void* host, void* device, int64_t bytes) const;

  const NetSpec net_;  // constant after construction, as all in this block
  const EngineOptions options_;
  const DeviceTuning tuning_;
  const std::vector<TensorInfo> parameter_table_, statistics_table_;
  const DeviceLayout layout_;
  const int shards_;
  const int logit_stride_;
  Device& device_;
  const std::unique_ptr<Stream> stream_;
  const std::unique_ptr<DeviceOps> ops_;
  ImageShape image_;
  UpdateShape update_;

  DeviceTape training_, evaluation_;
  std::unique_ptr<DeviceEngineMemory> memory_;
  float* part_ = nullptr;
  std::unique_ptr<Memory> average_;  // parameters, then statistics
  std::unique_ptr<DeviceArgsRing> mixes_, rates_;
  std::unique_ptr<DeviceTotalsRing> totals_;
  std::unique_ptr<Memory> host_logits_;  // pinned
  std::unique_ptr<Memory> transfer_;     // pinned: what states go through, piece by piece
  std::unique_ptr<Event> logits_there_;
  Loaded loaded_ = Loaded::nothing;

  std::vector<DeviceBucket> buckets_;  // one, if nobody asked for more
  std::function<void(PartRange)> bucket_ready_;
  std::vector<std::unique_ptr<DeviceGraph>> step_graphs_;  // per bucket
  std::unique_ptr<DeviceGraph> update_graph_;
  std::string graph_problem_;  // why nothing more is captured; ""
  // A step ran since a tensor was thawed: what steps load lazily is loaded, they can be captured.
  bool stepped_ = false;
  int64_t updates_ = 0;
  std::vector<bool> left_out_;  // per tensor: no gradient is computed
};

}  // namespace stoker
