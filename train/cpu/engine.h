// The CPU engine: fixed single-threaded micro-batches on oneDNN. Workers take micro-batches from a
// counter, and each runs them through its own MicroBatchNet; parameters are shared. The results do
// not depend on which worker ran a micro-batch. Owner: the trainer's replica; one thread calls.
// Internal: callers use train/engine/engine.h.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "train/cpu/memory.h"
#include "train/cpu/micro_batch_input.h"
#include "train/cpu/micro_batch_net.h"
#include "train/cpu/state_store.h"
#include "train/cpu/workers.h"
#include "train/engine/engine.h"
#include "train/graph/gradient_layout.h"

namespace stoker {

class CpuEngine final : public Engine {
 public:
  CpuEngine(const NetSpec& net, const EngineOptions& options);

  const NetSpec& net() const override { return net_; }
  Precision precision() const override { return options_.precision; }
  void expect_frozen(std::span<const TensorUpdate> tensors) override;
  void forward_backward(const BatchRows& batch) override;
  int64_t gradient_buffer_floats() const override { return layout_.numbers(); }
  int64_t gradient_floats() const override { return layout_.parameter_numbers(); }
  std::span<const float* const> gradient_buffers() const override;
  std::span<float> reduced_gradients() override;
  void update(const UpdateArgs& args) override;
  StepMetrics step_metrics() override;
  void blend_average(float decay, bool pull) override { states_->blend_average(decay, pull); }
  void forward(const BatchRows& batch, const View& view, bool averaged,
               std::span<float> logits) override;
  void read(StateKind kind, std::span<float> values) const override { states_->read(kind, values); }
  void write(StateKind kind, std::span<const float> values) override {
    states_->write(kind, values);
  }
  int64_t planned_bytes() const override;
  std::string describe_memory() const override;
  std::vector<std::string> implementations() const override;

 private:
  struct Worker {
    std::unique_ptr<MicroBatchNet> training, evaluation;
    CpuMemory arena;
  };
  struct MemoryLine {
    const char* what;
    int64_t bytes;
  };

  void build_nets();
  void allocate_training();
  bool sums_in_place() const;  // the sum of gradients replaces the only buffer
  void clear_sum();            // where no step will write
  void clear_left_out();
  // Throws std::invalid_argument with the first label that is no class of the net.
  void require_labels_in_range(const int32_t* labels, const char* what) const;
  MicroBatchRun run_of(bool averaged) const;
  float* gradients_of(int micro_batch) const;
  void run_training(MicroBatchNet& net, const MicroBatchRun& run) const;
  void for_each_micro_batch(const std::function<void(Worker&, int micro_batch)>& job);
  std::vector<MemoryLine> memory_lines() const;

  const NetSpec net_;  // constant after construction, like all members of this block
  const EngineOptions options_;
  const std::vector<TensorInfo> parameter_table_;
  const GradientLayout layout_;
  const std::vector<LayoutGap> gaps_;
  const int micro_batches_;
  const MicroBatchInput input_;
  const dnnl::engine engine_;

  CpuWorkers workers_;
  std::vector<Worker> nets_;  // per worker
  std::unique_ptr<CpuStateStore> states_;
  CpuMemory reduced_, gradients_;  // reduced gradients, unless in place; gradient buffers
  CpuMemory earlier_;              // sum of the batch's earlier parts, if there are parts
  bool has_earlier_ = false;       // it is of the batch that gradient_buffers() are of
  std::vector<const float*> gradient_pointers_;  // of earlier_, if there are parts; of gradients_
  std::vector<bool> left_out_;                   // per tensor: no gradient is computed
  bool gradients_finite_ = true;                 // of the last update
};

}  // namespace stoker
