#include "train/cpu/micro_batch_net.h"

#include <algorithm>

#include "train/cpu/plan_builder.h"

namespace stoker {
namespace {

// Sets a handle only if it changes, because that has a cost (version 2 also writes the padding of a
// padded layout).
void point(const dnnl::memory& memory, const void* to) {
  if (memory.get_data_handle() != to) memory.set_data_handle(const_cast<void*>(to));
}

void point_all(const std::vector<Binding>& bindings, const float* base) {
  for (const Binding& binding : bindings) point(binding.memory, base + binding.where);
}

void point_all(const std::vector<Binding>& bindings, const std::vector<dnnl::memory>& weights) {
  for (const Binding& binding : bindings) {
    point(binding.memory, weights[binding.where].get_data_handle());
  }
}

// Returns whether the node has fast kernels for blocks: every part of a concatenation but the last
// ends with a full block, and convolutions of more than one pixel read at least one (for fewer
// channels, oneDNN has only its reference kernels). The net's input lies otherwise.
bool suits_blocks(const NetSpec& net, const std::vector<NodeShape>& shapes, const NetNode& node) {
  if (node.kind == OpKind::concat) {
    std::vector<int> inputs = inputs_of(node);
    inputs.pop_back();
    return std::ranges::all_of(
        inputs, [&](int input) { return shapes[input].channels % kBlockChannels == 0; });
  }
  return node.kind != OpKind::conv || node.flat || node.kernel == Size{1, 1} ||
         net.nodes[node.input].kind == OpKind::input ||
         shapes[node.input].channels >= kBlockChannels;
}

}  // namespace

ActivationLayout activation_layout(const NetSpec& net, Precision precision, bool synchronised) {
  const bool fast =
      precision == Precision::fp32 && !synchronised && onednn::cpu_has(dnnl::cpu_isa::avx512_core);
  const std::vector<NodeShape> shapes = node_shapes(net);
  const bool blocked = fast && std::ranges::all_of(net.nodes, [&](const NetNode& node) {
                         return suits_blocks(net, shapes, node);
                       });
  return blocked ? ActivationLayout::blocked : ActivationLayout::nhwc;
}

MicroBatchNet::MicroBatchNet(const NetSpec& net, const PlanOptions& options,
                             const GradientLayout& layout, const dnnl::engine& engine)
    : layout_(layout), program_(std::make_unique<MicroBatchProgram>()) {
  CpuPlanBuilder builder(net, options, layout, engine, *program_);
  builder.build();
  program_->input = builder.view(builder.activation(0), program_->plan.input);
}

MicroBatchNet::~MicroBatchNet() = default;

int64_t MicroBatchNet::arena_bytes() const { return program_->plan.memory.bytes; }

void MicroBatchNet::place(std::byte* arena) {
  for (const Binding& binding : program_->arena) {
    point(binding.memory, arena + program_->plan.memory.offsets[binding.where]);
  }
}

void* MicroBatchNet::input() const { return program_->input.get_data_handle(); }

void MicroBatchNet::run(const MicroBatchRun& run) {
  point_all(program_->parameters, run.parameters);
  point_all(program_->statistics, run.statistics);
  point_all(program_->forward_weights, *run.forward_weights);
  if (run.gradients != nullptr) {
    point_all(program_->backward_weights, *run.backward_weights);
    point_all(program_->gradients, run.gradients);
  }
  program_->run(run);
}

void MicroBatchNet::leave_out(const std::vector<bool>& tensors) {
  program_->plan.leave_out(tensors, layout_);
}

const ExecutionPlan& MicroBatchNet::plan() const { return program_->plan; }

const std::vector<ConvLayout>& MicroBatchNet::conv_layouts() const {
  return program_->conv_layouts;
}

const std::vector<std::string>& MicroBatchNet::implementations() const {
  return program_->implementations;
}

}  // namespace stoker
