#include "train/graph/plan_builder.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace stoker {
namespace {

// The largest alignment, in bytes, that an operation of either engine requires. Buffer sizes are
// multiples of it, and therefore the planner's offsets are too.
constexpr int64_t kBufferAlignment = 256;

[[noreturn]] void broken_plan(const char* what) {
  std::fprintf(stderr, "stoker: broken execution plan: %s\n", what);
  std::abort();
}

}  // namespace

PlanOptions plan_options(const EngineOptions& options, const FusionRules& fusion, bool training) {
  return {options.micro_batch_size,
          options.precision,
          training,
          fusion,
          options.label_smoothing,
          1.0f / static_cast<float>(options.nominal_rows),
          options.seed,
          options.norms,
          options.rank};
}

PlanBuilder::PlanBuilder(const NetSpec& net, const PlanOptions& options,
                         const GradientLayout& layout, ExecutionPlan& plan)
    : net_(net), options_(options), layout_(layout), plan_(plan) {
  plan_.nodes = lower(net, options.fusion, options.training);
  values_.assign(plan_.nodes.size(), -1);
  contributions_.resize(plan_.nodes.size());
}

int PlanBuilder::new_buffer(int64_t bytes) {
  plan_.buffer_bytes.push_back((bytes + kBufferAlignment - 1) / kBufferAlignment *
                               kBufferAlignment);
  sharers_.push_back(0);
  written_.push_back(false);
  return write(static_cast<int>(plan_.buffer_bytes.size()) - 1);
}

int PlanBuilder::read(int buffer) {
  if (!written_[buffer]) broken_plan("a buffer is read before a step has written it");
  next_.reads.push_back(buffer);
  return buffer;
}

int PlanBuilder::write(int buffer) {
  next_.writes.push_back(buffer);
  return buffer;
}

int PlanBuilder::define_value(int index) {
  values_[index] = new_buffer(value_bytes(index));
  if (index == 0) {  // written before the first step
    next_.writes.clear();
    written_[values_[0]] = true;
  }
  return values_[index];
}

int PlanBuilder::define_value_over(int index, int buffer) {
  values_[index] = buffer;
  return write(buffer);
}

int PlanBuilder::value(int index) {
  if (values_[index] < 0) broken_plan("a value is read before it is defined");
  return read(values_[index]);
}

std::vector<int> PlanBuilder::take_gradient(int index, size_t most) {
  std::vector<int> buffers = std::move(contributions_[index]);
  contributions_[index].clear();
  if (buffers.empty()) broken_plan("a gradient is taken to which nobody contributed");
  while (buffers.size() > most) {
    const int a = read(buffers.back());
    buffers.pop_back();
    const int b = read(buffers.back());
    buffers.pop_back();
    int sum = owned(a) ? a : b;
    if (!owned(a) && !owned(b)) {
      sum = new_buffer(value_bytes(index));
    } else {
      write(sum);
    }
    append_sum(index, a, b, sum);
    release(a);
    release(b);
    ++sharers_[sum];
    buffers.push_back(sum);
  }
  return buffers;
}

int PlanBuilder::new_gradient(int index) {
  const int buffer = new_buffer(value_bytes(index));
  pass_gradient(index, buffer);
  return buffer;
}

void PlanBuilder::pass_gradient(int index, int buffer) {
  contributions_[index].push_back(buffer);
  ++sharers_[buffer];
}

int PlanBuilder::gradient_over(int index, int taken) {
  if (!owned(taken)) return new_gradient(index);
  pass_gradient(index, taken);
  return write(taken);
}

void PlanBuilder::begin(int index, StepUse use, int tensor) {
  next_.node = index;
  next_.use = use;
  next_.tensor = tensor;
}

void PlanBuilder::append_step(const char* name, int64_t bytes) {
  next_.name = name;
  next_.bytes = bytes;
  for (const int buffer : next_.writes) written_[buffer] = true;
  plan_.steps.push_back(next_);
  next_.reads.clear();
  next_.writes.clear();
}

}  // namespace stoker
