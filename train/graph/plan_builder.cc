#include "train/graph/plan_builder.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace stoker {
namespace {

// The largest alignment, in bytes, that an operation of either engine requires. Buffer sizes are
// multiples of it, and therefore the planner's offsets are too.
constexpr int64_t kBufferAlignment = 256;

bool has_parameters(OpKind kind) {
  return kind == OpKind::conv || kind == OpKind::batch_norm || kind == OpKind::linear;
}

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
  kept_.assign(plan_.nodes.size(), -1);
}

void PlanBuilder::build() {
  const int count = static_cast<int>(plan_.nodes.size());
  plan_.input = define_value(0);
  for (int i = 1; i < count; ++i) {
    begin(i, StepUse::always);
    build_forward(i);
  }
  plan_.forward_steps = plan_.steps.size();
  for (int i = count - 1; i > 0 && options_.training; --i) {
    begin(i, StepUse::both);
    build_backward(i);
  }
  plan_.memory = plan_memory(buffer_lives(plan_));
}

void PlanBuilder::build_forward(int index) {
  const OpKind kind = node(index).kind;
  if (has_parameters(kind)) return layer(index);
  if (kind == OpKind::add) return build_add(index);
  if (kind == OpKind::concat) {
    std::vector<int> parts;
    for (const int input : inputs_of(node(index))) parts.push_back(value(input));
    return concat(index, parts, define_value(index));
  }
  const int x = value(node(index).input), y = define_value(index);
  switch (kind) {
    case OpKind::dropout:
      return dropout("dropout", index, x, y);
    case OpKind::pad_channels:
      return pad_channels(index, x, y);
    case OpKind::max_pool:
    case OpKind::avg_pool:
    case OpKind::adaptive_avg_pool:
      return pool(index, x, y);
    default:
      return activate(index, x, y);
  }
}

// The sum overwrites the last value of a branch if nothing else needs that value.
void PlanBuilder::build_add(int index) {
  const auto free_after = [&](int input) {
    return node(input).readers == 1 && input != 0 && !value_needed_backward(input);
  };
  int first = node(index).input, second = node(index).more_inputs[0];
  if (!free_after(first) && free_after(second)) std::swap(first, second);
  const int a = value(first), b = value(second);
  const bool over = free_after(first) && first != second;
  add(index, a, b, over ? define_value_over(index, a) : define_value(index));
}

// Convolution, batch norm, GELU and the head read their inputs again; the other activations read
// their output.
bool PlanBuilder::value_needed_backward(int index) const {
  if (!options_.training) return false;
  const FusedNode& self = node(index);
  const bool kept_by_norm = self.kind == OpKind::batch_norm;  // it keeps what it needs
  if (!kept_by_norm && !self.passed_by_pool && reads_output(self.activation)) return true;
  return std::ranges::any_of(nodes(), [&](const FusedNode& reader) {
    const bool rereads = has_parameters(reader.kind) || reader.kind == OpKind::gelu;
    return rereads && reader.input == index;
  });
}

bool PlanBuilder::recalls_part(int index, int part) const {
  return options_.fusion.recalls_parts && part != 0 && value_needed_backward(part) &&
         value_needed_backward(index);
}

void PlanBuilder::build_backward(int index) {
  const OpKind kind = node(index).kind;
  if (has_parameters(kind)) return layer_back(index);
  const int dy = take_gradient(index, 1)[0];
  if (kind == OpKind::add) {
    const int passed = before_activation(index, dy);
    for (const int input : inputs_of(node(index))) {
      if (wants_gradient(input)) pass_gradient(input, passed);
    }
    return release(dy);
  }
  const int passed = kind == OpKind::max_pool ? before_activation(index, dy) : dy;
  int first = 0;  // channel of a concatenation
  for (const int input : inputs_of(node(index))) {
    const int begin = first;
    first += node(input).shape.channels;
    if (kind == OpKind::concat && recalls_part(index, input)) {
      const int whole = value(index);
      concat_back(index, input, begin, whole, define_value(input));
    }
    if (!wants_gradient(input)) continue;
    read(passed);
    switch (kind) {
      case OpKind::concat:
        concat_back(index, input, begin, dy, new_gradient(input));
        break;
      case OpKind::dropout:  // draws the factors again, which is cheaper than to keep them
        dropout("dropout_back", index, dy, gradient_over(input, dy));
        break;
      case OpKind::pad_channels:
        pad_channels_back(index, dy, new_gradient(input));
        break;
      case OpKind::max_pool:
      case OpKind::avg_pool:
      case OpKind::adaptive_avg_pool:
        pool_back(index, passed, new_gradient(input));
        break;
      default: {
        const int seen = value(reads_output(node(index).activation) ? index : input);
        activate_back(index, seen, dy, gradient_over(input, dy));
      }
    }
  }
  release(dy);
}

int PlanBuilder::before_activation(int index, int dy) {
  if (node(index).passed_by_pool || !reads_output(node(index).activation)) return dy;
  const int y = value(index);
  read(dy);
  const int before = owned(dy) ? write(dy) : new_buffer(value_bytes(index));
  activate_back(index, y, dy, before);
  return before;
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
    add_gradients(index, a, b, sum);
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
