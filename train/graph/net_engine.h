// The engine: what all sets of operations have in common. It checks what it is asked, keeps the
// net's states (flat fp32 masters in the order of GradientLayout), knows which tensors are frozen
// and which weights the layers' copies hold, and says what it takes of memory. How a batch is run
// and an update computed, and where the memory lies, say its operations: CpuEngine, DeviceEngine.
// Owner and threads: as Engine.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/engine/byte_text.h"
#include "train/engine/engine.h"
#include "train/graph/gradient_layout.h"
#include "train/graph/update_arithmetic.h"

namespace stoker {

class NetEngine : public Engine {
 public:
  const NetSpec& net() const final { return net_; }
  Precision precision() const final { return options_.precision; }
  int64_t gradient_buffer_floats() const final { return layout_.numbers(); }
  int64_t gradient_floats() const final { return layout_.parameter_numbers(); }
  void expect_frozen(std::span<const TensorUpdate> tensors) final;
  void forward_backward(const BatchRows& batch) final;
  void update(const UpdateArgs& args) final;
  void blend_average(float decay, bool pull) final;
  void forward(const BatchRows& batch, const View& view, bool averaged,
               std::span<float> logits) final;
  void read(StateKind kind, std::span<float> values) const final;
  void write(StateKind kind, std::span<const float> values) final;
  void copy_state(StateKind kind, std::span<const float> values) final;
  int64_t planned_bytes() const final;
  std::string describe_memory() const final;

 protected:
  // Messages begin with `who`. Throws std::invalid_argument for inconsistent options.
  NetEngine(const std::string& who, const NetSpec& net, const EngineOptions& options,
            const FusionRules& fusion);

  // Throw std::logic_error if the engine was made for evaluation only, or for no batches.
  void require_training(const char* what) const;
  void require_batches(const char* what) const;

  // A state in the engine's memory, with padding. Before make_average() the averages are the
  // current parameters and statistics.
  std::span<float> state(StateKind kind) const;
  float* weights(bool averaged) const {
    return state(averaged ? StateKind::average : StateKind::parameters).data();
  }
  float* statistics(bool averaged) const {
    return state(averaged ? StateKind::average_statistics : StateKind::statistics).data();
  }
  UpdatedStates updated_states() const;
  void reset_statistics();  // variances 1, means 0; what else there is must begin at 0
  void make_average();      // makes the averages separate states
  void load_weights(bool averaged);
  void weights_changed() { loaded_ = Loaded::nothing; }
  int64_t image_bytes() const { return int64_t{net_.input.width} * net_.input.height * 3; }

  // The operations. A batch is run, and logits are computed, with weights that are loaded.
  virtual void run_training(const BatchRows& batch) = 0;
  virtual void run_evaluation(const BatchRows& batch, const View& view, bool averaged,
                              std::span<float> logits) = 0;
  // Returns whether it also updates the copies of the parameters that layers read.
  virtual bool apply(const UpdateArgs& args) = 0;
  virtual void clear_gradient(const LayoutTensor& tensor) = 0;
  // left_out_ has changed; `thawed`: some tensors get gradients again.
  virtual void leave_out(bool thawed) = 0;
  virtual void copy_weights(const float* masters) = 0;  // for the layers
  virtual float* memory_of(StateKind kind) const = 0;   // null: the averages are not yet allocated
  virtual void allocate_average() = 0;
  virtual void copy(std::span<const float> from, float* to) = 0;  // in the engine's memory
  virtual void blend(float decay, bool pull, std::span<float> average,
                     std::span<float> current) = 0;
  // Between the engine's memory and the host's; parameters are in parameter_table's order there.
  virtual void download(const float* state, std::span<float> values) const = 0;
  virtual void upload(std::span<const float> values, float* state) = 0;
  virtual void download_parameters(const float* state, std::span<float> values) const = 0;
  virtual void upload_parameters(std::span<const float> values, float* state) = 0;
  virtual std::vector<MemoryLine> memory_lines() const = 0;
  virtual std::string memory_summary() const = 0;  // a line

  const NetSpec net_;  // constant after construction, like all members of this block
  const EngineOptions options_;
  const std::vector<TensorInfo> parameter_table_, statistics_table_;
  const GradientLayout layout_;
  const int micro_batches_;
  std::vector<bool> left_out_;  // per tensor: no gradient is computed

 private:
  // Which weights the layers' copies hold.
  enum class Loaded : uint8_t { nothing, parameters, average };

  void require_tensors(const char* what, std::span<const TensorUpdate> tensors) const;
  void require_state(const char* what, size_t given, int64_t wanted) const;
  int64_t held(StateKind kind) const;  // number of values, without padding

  Loaded loaded_ = Loaded::nothing;
};

}  // namespace stoker
