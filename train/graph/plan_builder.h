// Builds an ExecutionPlan: the steps, and buffers for the values and gradients of fused nodes. It
// decides for both engines which step adds up a gradient to which several nodes contribute, and
// whether a gradient may be overwritten. The engines derive from KernelBuilder and append the
// kernels of each step, node by node. A buffer that is read, written or created before append()
// belongs to the step that is appended next. Owner: the function that builds a plan. One thread.
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

  // Sets the node and the use of the steps that follow.
  void begin(int index, StepUse use, int tensor = -1);

 protected:
  void append_step(const char* name, int64_t bytes);
  // Appends the step sum = a + b over gradients of a node; `sum` may be a or b.
  virtual void append_sum(int index, int a, int b, int sum) = 0;

 private:
  const NetSpec& net_;
  const PlanOptions options_;
  const GradientLayout& layout_;
  ExecutionPlan& plan_;
  PlanStep next_;                                // its node, its use, and its buffers so far
  std::vector<bool> written_;                    // per buffer
  std::vector<int> values_;                      // per node: buffer
  std::vector<std::vector<int>> contributions_;  // per node: buffers
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

// The steps of one node. build_backward() is called after build_forward() and after the
// build_backward() of all later nodes.
template <typename Builder>
class NodeSteps {
 public:
  virtual ~NodeSteps() = default;
  virtual void build_forward(Builder& builder) = 0;
  virtual void build_backward(Builder& builder) = 0;
};

// An engine's factories of NodeSteps, one for each kind of node.
template <typename Builder>
struct NodeKinds {
  using Make = std::unique_ptr<NodeSteps<Builder>> (*)(int index);
  Make conv, norm, activation, add, concat, pool, pad, dropout, head;

  Make of(OpKind kind) const {
    switch (kind) {
      case OpKind::conv:
        return conv;
      case OpKind::batch_norm:
        return norm;
      case OpKind::relu:
      case OpKind::gelu:
      case OpKind::tanh:
      case OpKind::sigmoid:
        return activation;
      case OpKind::add:
        return add;
      case OpKind::concat:
        return concat;
      case OpKind::dropout:
        return dropout;
      case OpKind::max_pool:
      case OpKind::avg_pool:
      case OpKind::adaptive_avg_pool:
        return pool;
      case OpKind::pad_channels:
        return pad;
      case OpKind::linear:
        return head;
      case OpKind::input:
        break;
    }
    return nullptr;
  }
};

// Builds all steps and places the buffers.
template <typename Builder>
void build_plan(Builder& builder, ExecutionPlan& plan, const NodeKinds<Builder>& kinds) {
  const int count = static_cast<int>(plan.nodes.size());
  std::vector<std::unique_ptr<NodeSteps<Builder>>> steps(count);
  plan.input = builder.define_value(0);
  for (int i = 1; i < count; ++i) {
    steps[i] = kinds.of(plan.nodes[i].kind)(i);
    builder.begin(i, StepUse::always);
    steps[i]->build_forward(builder);
  }
  plan.forward_steps = plan.steps.size();
  for (int i = count - 1; i > 0 && builder.options().training; --i) {
    builder.begin(i, StepUse::both);
    steps[i]->build_backward(builder);
  }
  plan.memory = plan_memory(buffer_lives(plan));
}

}  // namespace stoker
