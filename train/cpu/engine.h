// The CPU's Engine: fixed single-threaded shards on oneDNN. Workers take shards from a counter,
// each runs them through its own ShardNet; parameters are shared. Which worker ran a shard leaves
// no trace in the numbers. Owner: the trainer's replica; one thread calls. Internal: callers see
// train/engine/engine.h.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "train/cpu/engine_memory.h"
#include "train/cpu/engine_weights.h"
#include "train/cpu/engine_workers.h"
#include "train/cpu/shard_net.h"
#include "train/cpu/shard_net_input.h"
#include "train/engine/engine.h"

namespace stoker {

class CpuEngine final : public Engine {
 public:
  CpuEngine(const NetSpec& net, const EngineOptions& options);

  const NetSpec& net() const override { return net_; }
  Precision precision() const override { return options_.precision; }
  void expect_frozen(std::span<const TensorUpdate> tensors) override;
  void forward_backward(const BatchRows& batch, const Mix& mix) override;
  int64_t part_floats() const override { return layout_.floats; }
  std::span<const float* const> parts() const override { return part_pointers_; }
  std::span<float> reduced() override { return reduced_.floats().first(layout_.floats); }
  void update(const UpdateArgs& args) override;
  StepTotals totals() override;
  void blend_average(float decay, bool pull) override;
  void forward(const BatchRows& batch, const View& view, bool averaged,
               std::span<float> logits) override;
  void read(StateKind kind, std::span<float> values) const override;
  void write(StateKind kind, std::span<const float> values) override;
  int64_t planned_bytes() const override;
  std::string describe_memory() const override;
  std::vector<std::string> implementations() const override;

 private:
  struct Worker {
    std::unique_ptr<ShardNet> training, evaluation;
    CpuEngineMemory arena;
  };
  // Which weights the convolutions' copies hold.
  enum class Loaded : uint8_t { nothing, parameters, average };

  void build_nets();
  void allocate();
  void load_weights(bool averaged);
  void for_each_shard(const std::function<void(Worker&, int shard)>& job);
  void for_each_chunk(const std::function<void(size_t tensor, int64_t begin, int64_t end)>& job);
  float total(TotalSlot slot) const;
  bool gradients_finite();
  void update_tensors(const UpdateArgs& args, float gradient_scale);
  void update_statistics();
  void ensure_average();
  std::span<float> state(StateKind kind) const;
  bool has_master_layout(StateKind kind) const;
  void convert(std::span<const float> from, std::span<float> to, bool to_canonical) const;
  struct MemoryLine {
    const char* what;
    int64_t bytes;
  };
  std::vector<MemoryLine> memory_lines() const;

  const NetSpec net_;  // constant after construction, as all in this block
  const EngineOptions options_;
  const std::vector<TensorInfo> parameter_table_, statistics_table_;
  const PartLayout layout_;
  const int shards_;
  const ShardInput input_;
  const dnnl::engine engine_;

  mutable CpuEngineWorkers workers_;
  std::vector<Worker> nets_;  // per worker
  std::unique_ptr<CpuEngineWeights> weights_;
  Loaded loaded_ = Loaded::nothing;

  CpuEngineMemory parameters_, momenta_, average_, statistics_, average_statistics_;
  CpuEngineMemory reduced_, parts_;
  std::vector<const float*> part_pointers_;
  std::vector<bool> left_out_;    // per tensor: no gradient is computed
  bool gradients_finite_ = true;  // of the last update
};

}  // namespace stoker
