#include "train/cpu/micro_batch_net.h"

#include <algorithm>
#include <bit>
#include <cmath>

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

void point_all(const std::vector<GradientBinding>& bindings, const MicroBatchRun& run) {
  for (const GradientBinding& binding : bindings) {
    point(binding.memory, run.scratch != nullptr ? run.scratch + binding.in_scratch
                                                 : run.gradients + binding.offset);
  }
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

int64_t MicroBatchNet::scratch_floats() const {
  return program_->scratch_floats + layout_.numbers() - layout_.moments();
}

void MicroBatchNet::run(MicroBatchRun run) {
  point_all(program_->parameters, run.parameters);
  point_all(program_->statistics, run.statistics);
  point_all(program_->forward_weights, *run.forward_weights);
  if (run.gradients != nullptr) {
    point_all(program_->backward_weights, *run.backward_weights);
    point_all(program_->gradients, run);
    run.rest = run.scratch != nullptr ? run.scratch + program_->scratch_floats
                                      : run.gradients + layout_.moments();
  }
  program_->run(run);
  if (run.gradients == nullptr) return;
  const GradientSum::Turn turn(run.sum, run.micro_batch);
  if (run.scratch == nullptr) return;
  add_to(run.gradients + layout_.moments(), run.rest, layout_.numbers() - layout_.moments());
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

namespace {

int reflected(int i, int size) {
  if (i < 0) return -i;
  return i >= size ? 2 * size - 2 - i : i;
}

std::vector<int> view_indices(int size, int shift, bool flip) {
  std::vector<int> from(size);
  for (int i = 0; i < size; ++i) from[i] = reflected((flip ? size - 1 - i : i) + shift, size);
  return from;
}

// The values of one image, and the distances between them.
struct Values {
  int channels;
  int64_t pixel, channel;
};

template <typename Table, typename Number>
void normalise(const Table& table, const uint8_t* pixels, int64_t count, const Values& v,
               Number* out) {
  for (int64_t i = 0; i < count; ++i) {
    for (int c = 0; c < v.channels; ++c) {
      out[i * v.pixel + c * v.channel] = table[c][pixels[3 * i + c]];
    }
  }
}

}  // namespace

uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

MicroBatchInput::MicroBatchInput(Size size, int channels, Precision precision,
                                 ActivationLayout layout, const std::array<float, 3>& mean,
                                 const std::array<float, 3>& stddev)
    : size_(size),
      channels_(channels),
      precision_(precision),
      pixel_stride_(layout == ActivationLayout::nhwc ? channels : 1),
      channel_stride_(
          layout == ActivationLayout::nhwc ? 1 : static_cast<int64_t>(size.width) * size.height) {
  for (int c = 0; c < 3; ++c) {
    for (int v = 0; v < 256; ++v) {
      fp32_[c][v] = (static_cast<float>(v) / 255.0f - mean[c]) / stddev[c];
      bf16_[c][v] = to_bf16(fp32_[c][v]);
    }
  }
}

void MicroBatchInput::load(const uint8_t* images, int rows, void* out) const {
  if (precision_ == Precision::bf16) {
    load_rows(images, rows, static_cast<uint16_t*>(out));
  } else {
    load_rows(images, rows, static_cast<float*>(out));
  }
}

void MicroBatchInput::load(const uint8_t* images, int rows, const View& view, void* out) const {
  if (precision_ == Precision::bf16) {
    load_view(images, rows, view, static_cast<uint16_t*>(out));
  } else {
    load_view(images, rows, view, static_cast<float*>(out));
  }
}

template <typename Number>
void MicroBatchInput::load_rows(const uint8_t* images, int rows, Number* out) const {
  const int64_t pixels = static_cast<int64_t>(size_.width) * size_.height;
  const Values values{channels_, pixel_stride_, channel_stride_};
  for (int64_t row = 0; row < rows; ++row) {
    const uint8_t* image = images + row * pixels * 3;
    Number* to = out + row * pixels * channels_;
    if constexpr (sizeof(Number) == 2) {
      normalise(bf16_, image, pixels, values, to);
    } else {
      normalise(fp32_, image, pixels, values, to);
    }
  }
}

template <typename Number>
void MicroBatchInput::load_view(const uint8_t* images, int rows, const View& view,
                                Number* out) const {
  const int64_t pixels = static_cast<int64_t>(size_.width) * size_.height;
  const std::vector<int> columns = view_indices(size_.width, view.shift_x, view.flip);
  const std::vector<int> lines = view_indices(size_.height, view.shift_y, false);
  for (int row = 0; row < rows; ++row) {
    const uint8_t* image = images + row * pixels * 3;
    Number* to = out + row * pixels * channels_;
    for (const int line : lines) {
      for (const int column : columns) {
        const uint8_t* pixel = image + 3 * (static_cast<int64_t>(line) * size_.width + column);
        for (int c = 0; c < channels_; ++c) {
          if constexpr (sizeof(Number) == 2) {
            to[c * channel_stride_] = bf16_[c][pixel[c]];
          } else {
            to[c * channel_stride_] = fp32_[c][pixel[c]];
          }
        }
        to += pixel_stride_;
      }
    }
  }
}

}  // namespace stoker
