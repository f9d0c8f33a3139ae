// Builds an ExecutionPlan: the steps, and buffers for the values and gradients of fused nodes. It
// decides for all engines which buffers a node reads and writes, which step adds up a gradient to
// which several nodes contribute, and what may be overwritten. An engine's set of operations
// derives from KernelBuilder and appends the kernels of each step. A buffer that is read, written
// or created before append() belongs to the step that is appended next. Owner: the function that
// builds a plan. One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "train/engine/engine.h"
#include "train/graph/execution_plan.h"

namespace stoker {

struct PlanOptions {
  int rows = 0;  // of a micro-batch
  Precision precision = Precision::fp32;
  bool training = true;  // false: forward only, with the running statistics
  FusionRules fusion;
  float label_smoothing = 0;
  float loss_scale = 1;           // 1 / nominal rows of the global batch
  uint64_t seed = 0;              // of dropout
  NormExchange* norms = nullptr;  // as in EngineOptions
  int rank = 0;                   // as in EngineOptions
};
PlanOptions plan_options(const EngineOptions& options, const FusionRules& fusion, bool training);

class PlanBuilder {
 public:
  // `net`, `layout` and `plan` must outlive it; `plan` is empty.
  PlanBuilder(const NetSpec& net, const PlanOptions& options, const GradientLayout& layout,
              ExecutionPlan& plan);
  virtual ~PlanBuilder() = default;
  PlanBuilder(const PlanBuilder&) = delete;
  PlanBuilder& operator=(const PlanBuilder&) = delete;

  const NetSpec& net() const { return net_; }
  const PlanOptions& options() const { return options_; }
  const GradientLayout& layout() const { return layout_; }
  const std::vector<FusedNode>& nodes() const { return plan_.nodes; }
  const FusedNode& node(int index) const { return plan_.nodes[index]; }
  const NetNode& spec(int index) const { return net_.nodes[plan_.nodes[index].node]; }
  virtual int64_t value_bytes(int index) const = 0;  // of a node's output and of its gradient

  void build();  // all steps of all nodes, and the places of the buffers

  // Buffers of the arena. All three return the buffer.
  int new_buffer(int64_t bytes);  // written by the next step
  int read(int buffer);
  int write(int buffer);
  int64_t buffer_bytes(int buffer) const { return plan_.buffer_bytes[buffer]; }

  // Puts the output of a node into a new buffer, or into one that holds an older value.
  int define_value(int index);
  int define_value_over(int index, int buffer);
  int value(int index);                                         // read by the next step
  int value_buffer(int index) const { return values_[index]; }  // does not mark it as read

  // The gradient of a node's output is the sum of its readers' contributions. take_gradient()
  // returns it as at most `most` buffers and appends steps that add up the others. The caller must
  // read these buffers, and release them after it has made its own contributions.
  bool wants_gradient(int index) const { return plan_.nodes[index].kind != OpKind::input; }
  std::vector<int> take_gradient(int index, size_t most);
  bool owned(int buffer) const { return sharers_[buffer] == 1; }  // may be overwritten
  int new_gradient(int index);                // a new buffer for a reader's contribution
  void pass_gradient(int index, int buffer);  // contributes a buffer that another gradient shares
  void release(int buffer) { --sharers_[buffer]; }
  // For a contribution that may overwrite the gradient `taken`: returns `taken` if it is owned,
  // else a new buffer.
  int gradient_over(int index, int taken);

  // Returns the buffer with the gradient before the activation that a node includes: `dy`, if the
  // activation reads its input or passes no gradient here, or if a step, which is appended, may
  // overwrite it.
  int before_activation(int index, int dy);

  // Sets the node and the use of the steps that follow.
  void begin(int index, StepUse use, int tensor = -1);

 protected:
  void append_step(const char* name, int64_t bytes);
  // A buffer of a node that its forward pass leaves for its backward pass: written now, read then.
  int keep(int index, int64_t bytes) { return kept_[index] = new_buffer(bytes); }
  int kept(int index) { return read(kept_[index]); }

  // The operations. Each appends what it does, for node `index`, with buffers that are marked as
  // read or written; `x` and `y` are values, `dy` and `dx` gradients.
  virtual void activate(int index, int x, int y) = 0;
  // `seen` is y if reads_output(), else x. `dx` may be dy.
  virtual void activate_back(int index, int seen, int dy, int dx) = 0;
  virtual void add(int index, int a, int b, int y) = 0;  // and the activation; `y` may be a
  // Adds up gradients of a node's output; `sum` may be a or b.
  virtual void add_gradients(int index, int a, int b, int sum) = 0;
  virtual void concat(int index, const std::vector<int>& parts, int y) = 0;
  // The gradient of one part, whose channels begin at `first`.
  virtual void concat_back(int index, int part, int first, int dy, int dx) = 0;
  // Values or gradients; `to` may be from.
  virtual void dropout(const char* name, int index, int from, int to) = 0;
  virtual void pool(int index, int x, int y) = 0;  // max, average, adaptive average
  virtual void pool_back(int index, int dy, int dx) = 0;
  virtual void pad_channels(int index, int x, int y) = 0;
  virtual void pad_channels_back(int index, int dy, int dx) = 0;
  // Nodes with parameters: convolutions, batch norms, and heads with their losses.
  virtual void layer(int index) = 0;
  virtual void layer_back(int index) = 0;

 private:
  void build_forward(int index);
  void build_backward(int index);
  void build_add(int index);
  bool value_needed_backward(int index) const;
  // Returns whether the backward pass copies a part out of a concatenation for the steps to come,
  // so that the part need not be kept.
  bool recalls_part(int index, int part) const;

  const NetSpec& net_;
  const PlanOptions options_;
  const GradientLayout& layout_;
  ExecutionPlan& plan_;
  PlanStep next_;                                // its node, its use, and its buffers so far
  std::vector<bool> written_;                    // per buffer
  std::vector<int> values_;                      // per node: buffer
  std::vector<std::vector<int>> contributions_;  // per node: buffers
  std::vector<int> kept_;                        // per node: buffer
  std::vector<int> sharers_;  // per buffer: number of contributions not yet released
};

// A plan builder that also appends a kernel, which takes a `Run`, for each step.
template <typename Run>
class KernelBuilder : public PlanBuilder {
 public:
  KernelBuilder(const NetSpec& net, const PlanOptions& options, const GradientLayout& layout,
                ProgramOf<Run>& program)
      : PlanBuilder(net, options, layout, program.plan), program_(program) {}

  void append(const char* name, int64_t bytes, typename ProgramOf<Run>::Kernel kernel) {
    append_step(name, bytes);
    program_.kernels.push_back(std::move(kernel));
  }
  void note_implementation(const std::string& name) {
    for (const std::string& known : program_.implementations) {
      if (known == name) return;
    }
    program_.implementations.push_back(name);
  }

 private:
  ProgramOf<Run>& program_;
};

// The steps of one layer. build_backward() is called after build_forward() and after those of all
// later nodes.
template <typename Builder>
class LayerSteps {
 public:
  virtual ~LayerSteps() = default;
  virtual void build_forward(Builder& builder) = 0;
  virtual void build_backward(Builder& builder) = 0;
};

}  // namespace stoker
