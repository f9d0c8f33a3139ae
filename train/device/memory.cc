#include "train/device/memory.h"

#include <algorithm>
#include <stdexcept>

#include "train/engine/engine_arguments.h"

namespace stoker {
namespace {

constexpr int kPieces = static_cast<int>(DevicePiece::count);

int64_t device_aligned(int64_t bytes) {
  constexpr int64_t kAlignment = 256;
  return round_up(bytes, kAlignment);
}

int64_t list_bytes(const auto& list) { return static_cast<int64_t>(list.size() * sizeof(list[0])); }

int64_t logit_bytes(const ExecutionPlan& plan, int rows) {
  const int64_t classes = plan.nodes.back().shape.channels;
  return rows * logit_stride(classes) * kFloat;
}

// Memory of training for a batch and its results, besides activations.
void add_batch_pieces(const EngineOptions& options, const GradientLayout& layout,
                      DeviceEngineSizes& sizes) {
  if (options.rows > options.micro_batch_size || options.accumulates) {
    sizes[DevicePiece::micro_batch_gradients] = layout.numbers() * kFloat;
  }
  const TensorPrecisions held = tensor_precisions(options.precision, kDevicePrecision);
  if (held.convolution_gradients == Precision::bf16) {
    sizes[DevicePiece::bf16_gradients] = layout.parameter_numbers() * 2;
  }
  sizes[DevicePiece::row_labels] = options.micro_batch_size * int64_t{sizeof(int32_t)};
  sizes[DevicePiece::row_weights] = options.micro_batch_size * kFloat;
  sizes[DevicePiece::row_mix_labels] = sizes[DevicePiece::row_labels];
  sizes[DevicePiece::row_mix_weights] = sizes[DevicePiece::row_weights];
  if (layout.net().loss == LossKind::binary) {
    sizes[DevicePiece::row_targets] = sizes[DevicePiece::row_weights] * layout.net().classes;
  }
  sizes[DevicePiece::row_position] = sizeof(int64_t);
  sizes[DevicePiece::conv_chunks] = list_bytes(layout.chunks(kChunkNumbers, true));
}

}  // namespace

int64_t DeviceEngineSizes::allocated() const {
  int64_t sum = 0;
  for (const int64_t each : bytes) sum += device_aligned(each);
  return sum;
}

DeviceEngineSizes device_engine_sizes(const EngineOptions& options, const GradientLayout& layout,
                                      const DeviceProgram& training,
                                      const DeviceProgram& evaluation) {
  DeviceEngineSizes sizes;
  const int64_t parameters = layout.parameter_numbers();
  sizes[DevicePiece::parameters] = parameters * kFloat;
  sizes[DevicePiece::statistics] = layout.statistics_numbers() * kFloat;
  sizes.average_bytes = device_aligned(parameters * kFloat) + layout.statistics_numbers() * kFloat;
  if (options.batches) {
    const TensorPrecisions held = tensor_precisions(options.precision, kDevicePrecision);
    if (held.activations == Precision::bf16) sizes[DevicePiece::weights] = parameters * 2;
    sizes[DevicePiece::logits] = logit_bytes(evaluation.plan, options.rows);
    sizes[DevicePiece::arena] = std::max(training.plan.memory.bytes, evaluation.plan.memory.bytes);
    sizes.workspace_bytes = std::max(training.workspace_bytes, evaluation.workspace_bytes);
  }
  if (!options.training) return sizes;
  sizes[DevicePiece::momenta] = parameters * kFloat;
  if (has_second_moments(options.optimizer)) {
    sizes[DevicePiece::second_moments] = parameters * kFloat;
  }
  if (needs_norms(options)) {
    const auto tensors = static_cast<int64_t>(layout.tensors().size());
    const auto chunks = static_cast<int64_t>(layout.chunks(kChunkNumbers).size());
    sizes[DevicePiece::tensor_squares] = (chunks + tensors) * int64_t{sizeof(TensorSquares)};
    sizes[DevicePiece::tensor_scales] = tensors * int64_t{sizeof(TensorScale)};
  }
  sizes[DevicePiece::gradients] = layout.numbers() * kFloat;
  if (options.batches) add_batch_pieces(options, layout, sizes);
  sizes[DevicePiece::chunks] = list_bytes(layout.chunks(kChunkNumbers));
  sizes[DevicePiece::statistic_channels] =
      list_bytes(layout.statistic_channels(options.micro_batch_size));
  sizes[DevicePiece::rates] =
      static_cast<int64_t>(sizeof(UpdateRates) + layout.tensors().size() * sizeof(TensorRate));
  sizes[DevicePiece::check] = sizeof(FiniteCheck);
  sizes[DevicePiece::decide_scratch] = kDecideScratchBytes;
  return sizes;
}

DeviceEngineSizes planned_device_sizes(const NetSpec& net, const EngineOptions& options,
                                       const DeviceTuning& tuning) {
  const GradientLayout layout(net, device_fusion(tuning));
  const auto plan = [&](bool training) {
    return build_device_program(net, plan_options(options, device_fusion(tuning), training), tuning,
                                layout, nullptr, options.device_norms);
  };
  if (!options.batches) return device_engine_sizes(options, layout, {}, {});
  return device_engine_sizes(options, layout, options.training ? plan(true) : DeviceProgram{},
                             plan(false));
}

std::vector<MemoryLine> lines_of(const DeviceEngineSizes& s) {
  int64_t named = 0;
  std::vector<MemoryLine> lines = {
      {"parameters and statistics", s[DevicePiece::parameters] + s[DevicePiece::statistics]},
      {"momenta", s[DevicePiece::momenta] + s[DevicePiece::second_moments]},
      {"gradients", s[DevicePiece::gradients] + s[DevicePiece::micro_batch_gradients] +
                        s[DevicePiece::bf16_gradients]},
      {"weights in bf16", s[DevicePiece::weights]},
      {"convolutions' workspaces", s.workspace_bytes},
      {"activations and their gradients", s[DevicePiece::arena] - s.workspace_bytes}};
  for (const MemoryLine& line : lines) named += line.bytes;
  lines.push_back({"tables, labels, logits", s.allocated() - named});
  lines.push_back({"average (if used)", s.average_bytes});
  return lines;
}

int64_t device_server_bytes(const NetSpec& net, const EngineOptions& replica, int others) {
  const DeviceEngineSizes sizes = planned_device_sizes(net, server_options(replica), {});
  return sizes.total() + others * sizes[DevicePiece::gradients];
}

int64_t largest_device_batch(const NetSpec& net, const EngineOptions& wanted,
                             const DeviceTuning& tuning, int64_t bytes, int64_t slot_bytes_per_row,
                             int step) {
  const auto fits = [&](int64_t rows) {
    EngineOptions options = wanted;
    options.rows = options.micro_batch_size = static_cast<int>(rows);
    options.nominal_rows = std::max(options.nominal_rows, rows);
    return planned_device_sizes(net, options, tuning).total() + slot_bytes_per_row * rows <= bytes;
  };
  if (!fits(step)) return 0;
  constexpr int64_t kMaxSteps = 1 << 16;
  int64_t good = 1, bad = 2;  // in steps
  while (bad < kMaxSteps && fits(bad * step)) {
    good = bad;
    bad *= 2;
  }
  while (bad - good > 1) {
    const int64_t middle = (good + bad) / 2;
    (fits(middle * step) ? good : bad) = middle;
  }
  return good * step;
}

DeviceEngineMemory::DeviceEngineMemory(const NetSpec& net, const EngineOptions& options,
                                       const DeviceTuning& tuning, const DeviceEngineSizes& sizes,
                                       Device& device, const DeviceOps& ops)
    : sizes_(sizes) {
  int64_t next = 0;
  for (int piece = 0; piece < kPieces; ++piece) {
    offsets_[piece] = next;
    next += device_aligned(sizes.bytes[piece]);
  }
  const int64_t free = ops.free_bytes();
  std::string reason;
  try {
    if (next <= free) memory_ = device.allocate(static_cast<size_t>(next), MemoryKind::device);
  } catch (const std::runtime_error& error) {
    reason = std::string(" (") + error.what() + ")";
  }
  if (memory_ != nullptr) return;
  const std::string needs = mebibytes(next) + ", and " + mebibytes(free) + " are free" + reason;
  if (!options.batches) {
    throw std::runtime_error(device.name() + ": to keep the weights of '" + net.name + "' takes " +
                             needs + ". It would hold:\n" + describe_lines(lines_of(sizes)));
  }
  // The feed may allocate its slots before or after this: the largest batch is computed for the
  // memory that is free now.
  const int64_t image = static_cast<int64_t>(net.input.width) * net.input.height * 3;
  const int64_t largest = largest_device_batch(net, options, tuning, free, 0, 8);
  const std::string advice = largest > 0 ? "the largest batch that fits is about " +
                                               std::to_string(largest) + " samples (each takes " +
                                               std::to_string(image) + " bytes more per slot)"
                                         : "not even a batch of 8 samples fits";
  throw std::runtime_error(device.name() + ": training '" + net.name + "' with " +
                           std::to_string(options.rows) + " samples needs " + needs + "; " +
                           advice + ". It would hold:\n" + describe_lines(lines_of(sizes)));
}

}  // namespace stoker
