// The operations of the engine (train/graph/net_engine.h) on a device. All work is queued on one
// stream; only step_metrics_of(), forward(), read() and write() wait for the device. Micro-batches
// run one after the other in one arena, and their gradient buffers are summed. After the first step
// (and the first step after a tensor is unfrozen), forward and backward run as a captured graph
// (one per bucket if gradients are reduced in buckets), and so does the update: values that change
// from step to step are in device memory. Passes whose batch norms meet those of other replicas are
// queued anew in each step, because the replicas' threads meet in between. Owner: the trainer's
// replica; one thread calls. Internal: callers use train/engine/engine.h and train/cuda/engine.h.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/device/buckets.h"
#include "train/device/memory.h"
#include "train/device/profile.h"
#include "train/device/program.h"
#include "train/device/rings.h"
#include "train/graph/net_engine.h"

namespace stoker {

using DeviceOpsFactory = std::function<std::unique_ptr<DeviceOps>(Device&, Stream&)>;

class DeviceEngine final : public NetEngine {
 public:
  // Throws std::invalid_argument for inconsistent options, std::runtime_error if the device has too
  // little memory, naming the largest batch that fits.
  DeviceEngine(const NetSpec& net, const EngineOptions& options, const DeviceTuning& tuning,
               Device& device, const DeviceOpsFactory& make_ops);
  ~DeviceEngine() override;

  Stream* stream() override { return stream_.get(); }
  bool reduce_in_buckets(int64_t bytes, std::function<void(BufferRange)> ready) override;
  std::span<const float* const> gradient_buffers() const override { return {&gradients_, 1}; }
  std::span<float> reduced_gradients() override;
  StepMetrics step_metrics() override { return step_metrics_of(updates_ - 1); }
  StepMetrics step_metrics_of(int64_t update) override;
  int metrics_lag() const override { return kLag; }
  std::span<const float> device_state(StateKind kind) const override { return state(kind); }
  std::vector<std::string> implementations() const override;
  std::string warning() const override;
  // See time_steps(). The values in gradient_buffers() are undefined afterwards.
  std::vector<DeviceStepTime> profile(int runs);

 private:
  static constexpr int kLag = 4;  // updates by which the host may be late

  void run_training(const BatchRows& batch) override;
  void run_evaluation(const BatchRows& batch, const View& view, bool averaged,
                      std::span<float> logits) override;
  bool apply(const UpdateArgs& args) override;
  void clear_gradient(const LayoutTensor& tensor) override;
  void leave_out(bool thawed) override;
  void copy_weights(const float* masters) override;
  float* memory_of(StateKind kind) const override;
  void allocate_average() override;
  void copy(std::span<const float> from, float* to) override;
  void blend(float decay, bool pull, std::span<float> average, std::span<float> current) override;
  void download(const float* state, std::span<float> values) const override;
  void upload(std::span<const float> values, float* state) override;
  void download_parameters(const float* state, std::span<float> values) const override;
  void upload_parameters(std::span<const float> values, float* state) override;
  std::vector<MemoryLine> memory_lines() const override;
  std::string memory_summary() const override;

  void build_programs();
  void allocate();
  void allocate_training();
  DeviceRun run_of(const DeviceProgram& program, bool averaged) const;
  DeviceRun training_run() const;
  void load_targets(const BatchRows& batch, int64_t first);
  void load_micro_batch(const BatchRows& batch, int micro_batch);
  void run_bucket(const DeviceBucket& bucket);
  void clear_sum(BufferRange range);
  bool syncs_norms() const;
  bool sums_parts() const;
  void add_to_sum(bool first, BufferRange range);
  void upload_rates(const UpdateArgs& args);
  void queue_update();

  void to_device(const void* host, void* device, int64_t bytes) const;

  const DeviceTuning tuning_;  // constant after construction, like all members of this block
  const int logit_stride_;
  Device& device_;
  const std::unique_ptr<Stream> stream_;
  const std::unique_ptr<DeviceOps> ops_;
  ImageShape image_;
  UpdateShape update_;

  // Empty if no batches will come, as is what is made for them.
  DeviceProgram training_, evaluation_;
  bool draws_ = false;        // training has dropout
  bool has_targets_ = false;  // the last batch had BatchRows::targets
  std::unique_ptr<DeviceEngineMemory> memory_;
  std::unique_ptr<Memory> average_;   // parameters, then statistics
  std::unique_ptr<Memory> transfer_;  // pinned; states are copied through it in pieces
  float* gradients_ = nullptr;        // of all micro-batches
  std::unique_ptr<DeviceArgsRing> rates_;
  std::unique_ptr<DeviceMetricsRing> metrics_;
  std::unique_ptr<Memory> host_logits_;  // pinned
  std::unique_ptr<Event> logits_there_;

  std::vector<DeviceBucket> buckets_;  // one without reduce_in_buckets()
  std::function<void(BufferRange)> bucket_ready_;
  GraphRunner graphs_;
  std::vector<std::unique_ptr<DeviceGraph>> step_graphs_;  // per bucket
  std::unique_ptr<DeviceGraph> update_graph_;
  // True if a step has run since a tensor was unfrozen: then everything that steps load lazily is
  // loaded, and they can be captured.
  bool stepped_ = false;
  int64_t updates_ = 0;
};

}  // namespace stoker
