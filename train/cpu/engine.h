// The operations of the CPU engine: fixed single-threaded micro-batches on oneDNN. Workers take
// micro-batches from a counter, and each runs them through its own MicroBatchNet; parameters are
// shared. The results do not depend on which worker ran a micro-batch. Owner: the trainer's
// replica; one thread calls. Internal: callers use train/engine/engine.h.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "train/cpu/memory.h"
#include "train/cpu/micro_batch_net.h"
#include "train/cpu/weights.h"
#include "train/cpu/workers.h"
#include "train/graph/net_engine.h"

namespace stoker {

class CpuEngine final : public NetEngine {
 public:
  CpuEngine(const NetSpec& net, const EngineOptions& options);

  std::span<const float* const> gradient_buffers() const override;
  std::span<float> reduced_gradients() override;
  StepMetrics step_metrics() override;
  bool gives_row_results() const override { return true; }
  std::vector<std::string> implementations() const override;

 private:
  struct Worker {
    std::unique_ptr<MicroBatchNet> training, evaluation;
    CpuMemory arena, scratch;  // of micro-batches that add to a sum
  };

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

  void build_nets();
  void allocate_training();
  void clear_sum();  // where no step will write
  // Throws std::invalid_argument with the first label that is no class of the net.
  void require_labels_in_range(const int32_t* labels, const char* what) const;
  MicroBatchRun run_of(bool averaged) const;
  int gradient_buffer_count() const { return options_.alone ? 1 : micro_batches_; }
  float* gradient_buffer(int index) const;
  // Where the micro-batch of a worker leaves its gradients.
  void aim_gradients(MicroBatchRun& run, const Worker& worker, bool first_part);
  void run_net(MicroBatchNet& net, const MicroBatchRun& run);
  void for_each_micro_batch(const std::function<void(Worker&, int micro_batch)>& job);
  // Converts between parameter_table's order and the order of the masters, in which the weights of
  // each convolution have the layout of its gradients.
  void convert(const float* from, float* to, bool to_canonical) const;

  const std::vector<LayoutGap> gaps_;
  const MicroBatchInput input_;
  const dnnl::engine engine_;

  mutable CpuWorkers workers_;
  std::vector<Worker> nets_;  // per worker
  std::unique_ptr<CpuWeightCopies> copies_;
  CpuMemory parameters_, momenta_, second_moments_, average_, statistics_, average_statistics_;
  CpuMemory gradients_;       // buffers; the first becomes the sum, unless earlier_ does
  CpuMemory earlier_;         // sum of the batch's earlier parts, if there are parts and buffers
  GradientSum sum_;           // of all micro-batches, where the engine is alone
  bool has_earlier_ = false;  // it is of the batch that gradient_buffers() are of
  std::vector<const float*> gradient_pointers_;  // of earlier_, if there are parts; of gradients_
  bool gradients_finite_ = true;                 // of the last update, as is the norm
  double gradient_norm_ = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace stoker
