#include "train/device/engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "train/collective/device_norm_exchange.h"
#include "train/engine/engine_arguments.h"

namespace stoker {
namespace {

// Large enough that a state needs few copies, small enough to stay pinned for the engine's
// lifetime.
constexpr int64_t kTransferBytes = int64_t{4} << 20;

// The weights of convolutions are OHWI with the input's padding channels, which stay 0. Calls
// visit(index in PyTorch's order, index in the flat buffer).
template <typename Visit>
void for_each_number(const GradientLayout& layout, std::span<const TensorInfo> table, Visit visit) {
  for (size_t t = 0; t < table.size(); ++t) {
    const TensorInfo& info = table[t];
    const LayoutTensor& tensor = layout.tensors()[t];
    if (info.kind != ParameterKind::conv_weight) {
      for (int64_t i = 0; i < info.count; ++i) visit(info.offset + i, tensor.offset + i);
      continue;
    }
    const ConvExtents extents = conv_extents(layout.net(), info);
    const int64_t outs = extents.out, ins = extents.in, taps = extents.height * extents.width;
    const int64_t padded_ins = tensor.count / outs / taps;
    for (int64_t o = 0; o < outs; ++o) {
      for (int64_t i = 0; i < ins; ++i) {
        for (int64_t tap = 0; tap < taps; ++tap) {
          visit(info.offset + (o * ins + i) * taps + tap,
                tensor.offset + (o * taps + tap) * padded_ins + i);
        }
      }
    }
  }
}

}  // namespace

DeviceEngine::DeviceEngine(const NetSpec& net, const EngineOptions& options,
                           const DeviceTuning& tuning, Device& device,
                           const DeviceOpsFactory& make_ops)
    : NetEngine(device.name() + ": engine", net, options, device_fusion(tuning)),
      tuning_(tuning),
      logit_stride_(logit_stride(net.classes)),
      device_(device),
      stream_(device.make_stream()),
      ops_(make_ops(device, *stream_)),
      graphs_(*ops_, tuning.graphs) {
  if (options_.batches) build_programs();
  allocate();
  if (options_.training) allocate_training();
  if (syncs_norms()) options_.device_norms->join(options_.rank, {&device_, stream_.get()});
}

DeviceEngine::~DeviceEngine() {
  try {
    stream_->synchronize();  // so that nothing uses memory and rings any more
  } catch (const std::exception&) {
    // The device has failed and has already reported it; there is nothing to wait for.
  }
}

void DeviceEngine::build_programs() {
  const auto build = [&](bool training) {
    return build_device_program(net_, plan_options(options_, device_fusion(tuning_), training),
                                tuning_, layout_, ops_.get(), options_.device_norms);
  };
  evaluation_ = build(false);
  if (options_.training) {
    training_ = build(true);
    draws_ = std::ranges::any_of(
        training_.plan.nodes, [](const FusedNode& node) { return node.kind == OpKind::dropout; });
    buckets_ = plan_buckets(training_.plan, layout_, 0);
    step_graphs_.resize(buckets_.size());
  }
  image_ = {options_.micro_batch_size, net_.input.height,
            net_.input.width,          evaluation_.plan.nodes[0].shape.channels,
            net_.input_channels,       options_.precision};
  std::ranges::copy(options_.mean, image_.mean);
  std::ranges::copy(options_.stddev, image_.stddev);
}

void DeviceEngine::allocate() {
  memory_ = std::make_unique<DeviceEngineMemory>(
      net_, options_, tuning_, device_engine_sizes(options_, layout_, training_, evaluation_),
      device_, *ops_);
  ops_->zero(memory_->data(), memory_->allocated());
  if (options_.batches) {
    logits_there_ = device_.make_event();
    host_logits_ = device_.allocate(static_cast<size_t>(options_.rows) * logit_stride_ * kFloat,
                                    MemoryKind::pinned);
  }
  const int64_t largest = std::max(layout_.parameter_numbers(), layout_.statistics_numbers());
  transfer_ = device_.allocate(static_cast<size_t>(std::min(kTransferBytes, largest * kFloat)),
                               MemoryKind::pinned);
  reset_statistics();
}

void DeviceEngine::allocate_training() {
  gradients_ = memory_->at<float>(DevicePiece::gradients);
  const auto upload = [&](const auto& list, DevicePiece piece) {
    to_device(list.data(), memory_->at(piece), memory_->sizes()[piece]);
    return static_cast<int>(list.size());
  };
  update_.chunks = memory_->at<TensorChunk>(DevicePiece::chunks);
  update_.chunk_count = upload(layout_.chunks(kChunkNumbers), DevicePiece::chunks);
  if (options_.batches) {
    upload(layout_.chunks(kChunkNumbers, true), DevicePiece::conv_chunks);
  }
  update_.tensor_count = static_cast<int>(layout_.tensors().size());
  update_.channels = memory_->at<StatisticChannel>(DevicePiece::statistic_channels);
  update_.channel_count = upload(layout_.statistic_channels(options_.micro_batch_size),
                                 DevicePiece::statistic_channels);
  update_.numbers = layout_.numbers();
  update_.moments = layout_.moments();
  update_.metrics = layout_.metrics();
  update_.nominal_rows = static_cast<float>(options_.nominal_rows);
  rates_ = std::make_unique<DeviceArgsRing>(device_, *stream_, memory_->at(DevicePiece::rates),
                                            memory_->sizes()[DevicePiece::rates]);
  metrics_ = std::make_unique<DeviceMetricsRing>(device_, *stream_,
                                                 memory_->at<FiniteCheck>(DevicePiece::check));
}

std::span<float> DeviceEngine::reduced_gradients() {
  return {gradients_, static_cast<size_t>(layout_.numbers())};
}

void DeviceEngine::clear_gradient(const LayoutTensor& tensor) {
  for (const DevicePiece piece : {DevicePiece::gradients, DevicePiece::micro_batch_gradients}) {
    if (memory_->sizes()[piece] == 0) continue;
    ops_->zero(memory_->at<float>(piece) + tensor.offset, tensor.count * kFloat);
  }
  if (memory_->sizes()[DevicePiece::bf16_gradients] > 0) {
    ops_->zero(memory_->at(DevicePiece::bf16_gradients) + tensor.offset * 2, tensor.count * 2);
  }
}

void DeviceEngine::leave_out(bool thawed) {
  training_.plan.leave_out(left_out_, layout_);
  for (auto& graph : step_graphs_) graph.reset();
  // Steps that are active again may never have run: they must load what they load lazily outside of
  // a capture.
  if (thawed) stepped_ = false;
}

bool DeviceEngine::reduce_in_buckets(int64_t bytes, std::function<void(BufferRange)> ready) {
  require_training("reduce_in_buckets");
  require_batches("reduce_in_buckets");
  if (bytes < 1) {
    throw std::invalid_argument("buckets of " + std::to_string(bytes) + " bytes");
  }
  buckets_ = plan_buckets(training_.plan, layout_, bytes);
  // The new buckets contain the same steps, so these can still be captured.
  step_graphs_.clear();
  step_graphs_.resize(buckets_.size());
  bucket_ready_ = std::move(ready);
  return true;
}

DeviceRun DeviceEngine::run_of(const DeviceProgram& program, bool averaged) const {
  DeviceRun run;
  run.arena = memory_->at(DevicePiece::arena);
  run.memory = &program.plan.memory;
  const float* const masters = weights(averaged);
  run.parameters = masters;
  run.statistics = statistics(averaged);
  run.weights = options_.precision == Precision::bf16 ? memory_->at(DevicePiece::weights)
                                                      : reinterpret_cast<const std::byte*>(masters);
  return run;
}

DeviceRun DeviceEngine::training_run() const {
  DeviceRun run = run_of(training_, false);
  run.rows = {memory_->at<int32_t>(DevicePiece::row_labels),
              memory_->at<float>(DevicePiece::row_weights),
              memory_->at<int32_t>(DevicePiece::row_mix_labels),
              memory_->at<float>(DevicePiece::row_mix_weights)};
  if (has_targets_) run.rows.targets = memory_->at<float>(DevicePiece::row_targets);
  run.position = memory_->at<int64_t>(DevicePiece::row_position);
  run.gradients = memory_->at<float>(sums_parts() ? DevicePiece::micro_batch_gradients
                                                  : DevicePiece::gradients);
  if (memory_->sizes()[DevicePiece::bf16_gradients] > 0) {
    run.bf16_gradients = memory_->at(DevicePiece::bf16_gradients);
  }
  return run;
}

// Copies the rows' targets to where the captured work reads them. Rows with one label have it
// twice: then the shares do not matter, and a share of 0 gives the bits of a loss with one label.
void DeviceEngine::load_targets(const BatchRows& batch, int64_t first) {
  const int64_t labels = options_.micro_batch_size * int64_t{sizeof(int32_t)};
  const int64_t weights = options_.micro_batch_size * kFloat;
  const bool mixed = batch.mix_labels != nullptr;
  if ((batch.targets != nullptr) != has_targets_) {  // captured work reads the one or the other
    has_targets_ = !has_targets_;
    for (auto& graph : step_graphs_) graph.reset();
  }
  if (has_targets_) {
    ops_->copy(memory_->at(DevicePiece::row_targets), batch.targets + first * net_.classes,
               weights * net_.classes);
  }
  ops_->copy(memory_->at(DevicePiece::row_labels), batch.labels + first, labels);
  ops_->copy(memory_->at(DevicePiece::row_weights), batch.weights + first, weights);
  ops_->copy(memory_->at(DevicePiece::row_mix_labels),
             (mixed ? batch.mix_labels : batch.labels) + first, labels);
  if (mixed) {
    ops_->copy(memory_->at(DevicePiece::row_mix_weights), batch.mix_weights + first, weights);
  } else {
    ops_->zero(memory_->at(DevicePiece::row_mix_weights), weights);
  }
}

void DeviceEngine::load_micro_batch(const BatchRows& batch, int micro_batch) {
  const int rows = options_.micro_batch_size;
  const int64_t first = static_cast<int64_t>(micro_batch) * rows;
  load_targets(batch, first);
  if (draws_) {
    ops_->set(batch.position + first, memory_->at<int64_t>(DevicePiece::row_position));
  }
  ops_->load_view(image_, batch.images + first * image_bytes(), View{},
                  run_of(training_, false).at(training_.plan.input));
}

// Clears what no step writes. The last sum is in the buffer, and what was lost on a wire is sent
// later: it may have more than zeros there.
void DeviceEngine::clear_sum(BufferRange range) {
  const auto clear = [&](int64_t offset, int64_t count) {
    if (offset < range.begin || offset >= range.end) return;
    ops_->zero(gradients_ + offset, count * kFloat);
  };
  for (const LayoutGap& gap : layout_.gaps()) clear(gap.offset, gap.count);
  for (size_t t = 0; t < left_out_.size(); ++t) {
    if (left_out_[t]) clear(layout_.tensors()[t].offset, layout_.tensors()[t].count);
  }
}

void DeviceEngine::run_bucket(const DeviceBucket& bucket) {
  if (!sums_parts()) clear_sum(bucket.range);
  const DeviceRun run = training_run();
  training_.run(run, bucket.begin_step, bucket.end_step);
  if (run.bf16_gradients != nullptr && bucket.chunks > 0) {
    ops_->cast_to_fp32(memory_->at<TensorChunk>(DevicePiece::conv_chunks) + bucket.first_chunk,
                       bucket.chunks, run.bf16_gradients, run.gradients);
  }
}

// Returns whether batch norms meet those of other replicas.
bool DeviceEngine::syncs_norms() const {
  return options_.training && options_.batches && options_.device_norms != nullptr;
}

// Returns whether the gradient buffer is a sum, of micro-batches or of the parts of a batch.
bool DeviceEngine::sums_parts() const {
  return memory_->sizes()[DevicePiece::micro_batch_gradients] > 0;
}

// Adds a range of the micro-batch's gradient buffer to the sum of those before, unless it is the
// first.
void DeviceEngine::add_to_sum(bool first, BufferRange range) {
  const float* from = memory_->at<float>(DevicePiece::micro_batch_gradients) + range.begin;
  const int64_t count = range.end - range.begin;
  if (first) {
    ops_->copy(gradients_ + range.begin, from, count * kFloat);
  } else {
    ops_->accumulate(count, from, gradients_ + range.begin);
  }
}

void DeviceEngine::run_training(const BatchRows& batch) {
  if (batch.targets != nullptr) require_binary_loss(net_);
  ops_->push_range("forward and backward");
  for (int micro_batch = 0; micro_batch < micro_batches_; ++micro_batch) {
    load_micro_batch(batch, micro_batch);
    const bool ready = stepped_ && !syncs_norms();
    for (size_t b = 0; b < buckets_.size(); ++b) {
      ops_->push_range("bucket");
      graphs_.run(step_graphs_[b], ready, [&] { run_bucket(buckets_[b]); });
      if (sums_parts()) add_to_sum(batch.first && micro_batch == 0, buckets_[b].range);
      if (bucket_ready_ && batch.last && micro_batch == micro_batches_ - 1) {
        bucket_ready_(buckets_[b].range);
      }
      ops_->pop_range();
    }
    stepped_ = true;
  }
  ops_->pop_range();
}

void DeviceEngine::upload_rates(const UpdateArgs& args) {
  const UpdateRates rates = update_rates(args);
  std::byte* out = rates_->begin();
  std::memcpy(out, &rates, sizeof rates);
  out += sizeof rates;
  for (const TensorUpdate& tensor : args.tensors) {
    const TensorRate rate = tensor_rate(args, tensor);
    std::memcpy(out, &rate, sizeof rate);
    out += sizeof rate;
  }
  rates_->upload();
}

void DeviceEngine::queue_update() {
  const auto has = [&](DevicePiece piece) { return memory_->sizes()[piece] > 0; };
  auto* check = memory_->at<FiniteCheck>(DevicePiece::check);
  const auto* rates = memory_->at<UpdateRates>(DevicePiece::rates);
  UpdatedStates states = updated_states();
  if (has(DevicePiece::weights)) states.copies = memory_->at(DevicePiece::weights);
  ops_->decide(update_, gradients_, check, memory_->at(DevicePiece::decide_scratch));
  TensorScale* scales = nullptr;
  if (has(DevicePiece::tensor_scales)) {
    scales = memory_->at<TensorScale>(DevicePiece::tensor_scales);
    ops_->scale_tensors(update_, rates, check, gradients_, states.weights,
                        memory_->at<TensorSquares>(DevicePiece::tensor_squares), scales);
  }
  ops_->update(update_, rates, check, scales, gradients_, states);
  ops_->move_statistics(update_, check, gradients_, statistics(false));
}

bool DeviceEngine::apply(const UpdateArgs& args) {
  upload_rates(args);
  ops_->push_range("update");
  graphs_.run(update_graph_, updates_ > 0, [&] { queue_update(); });
  ops_->pop_range();
  metrics_->fetch(updates_++);
  return true;
}

StepMetrics DeviceEngine::step_metrics_of(int64_t update) {
  require_training("metrics");
  if (update < 0 || update >= updates_ || update < updates_ - kMetricsKept) {
    throw std::logic_error("metrics of update " + std::to_string(update) + ": there were " +
                           std::to_string(updates_) + ", the last " + std::to_string(kMetricsKept) +
                           " are kept");
  }
  return metrics_->step_metrics_of(update);
}

void DeviceEngine::run_evaluation(const BatchRows& batch, const View& view, bool averaged,
                                  std::span<float> logits) {
  ops_->push_range("evaluation");
  const int rows = options_.micro_batch_size;
  for (int micro_batch = 0; micro_batch < micro_batches_; ++micro_batch) {
    const int64_t first = static_cast<int64_t>(micro_batch) * rows;
    DeviceRun run = run_of(evaluation_, averaged);
    run.logits = memory_->at<float>(DevicePiece::logits) + first * logit_stride_;
    ops_->load_view(image_, batch.images + first * image_bytes(), view,
                    run.at(evaluation_.plan.input));
    evaluation_.run(run);
  }
  ops_->pop_range();
  stream_->copy(host_logits_->data(), memory_->at(DevicePiece::logits), host_logits_->size_bytes(),
                CopyKind::device_to_host);
  stream_->record(*logits_there_);
  logits_there_->synchronize();
  const auto* from = reinterpret_cast<const float*>(host_logits_->data());
  for (int row = 0; row < options_.rows; ++row) {
    std::copy_n(from + static_cast<int64_t>(row) * logit_stride_, net_.classes,
                logits.begin() + static_cast<int64_t>(row) * net_.classes);
  }
}

std::vector<DeviceStepTime> DeviceEngine::profile(int runs) {
  require_training("profile");
  require_batches("profile");
  if (syncs_norms()) throw std::logic_error("profile: batch norms would wait for other replicas");
  load_weights(false);
  return time_steps(net_, training_, options_.micro_batch_size, training_run(), runs, device_,
                    *stream_);
}

void DeviceEngine::copy_weights(const float* masters) {
  if (options_.precision == Precision::fp32) return;  // layers read the masters
  ops_->cast_to_bf16(layout_.parameter_numbers(), masters, memory_->at(DevicePiece::weights));
}

float* DeviceEngine::memory_of(StateKind kind) const {
  auto* const average = average_ != nullptr ? reinterpret_cast<float*>(average_->data()) : nullptr;
  switch (kind) {
    case StateKind::parameters:
      return memory_->at<float>(DevicePiece::parameters);
    case StateKind::momenta:
      return memory_->at<float>(DevicePiece::momenta);
    case StateKind::second_moments:
      return memory_->at<float>(DevicePiece::second_moments);
    case StateKind::statistics:
      return memory_->at<float>(DevicePiece::statistics);
    case StateKind::average:
      return average;
    case StateKind::average_statistics:
      return average != nullptr ? average + layout_.parameter_numbers() : nullptr;
  }
  return nullptr;
}

void DeviceEngine::allocate_average() {
  average_ =
      device_.allocate(static_cast<size_t>(memory_->sizes().average_bytes), MemoryKind::device);
}

void DeviceEngine::copy(std::span<const float> from, float* to) {
  stream_->copy(to, from.data(), from.size_bytes(), CopyKind::device_to_device);
}

void DeviceEngine::blend(float decay, bool pull, std::span<float> average,
                         std::span<float> current) {
  ops_->blend(static_cast<int64_t>(average.size()), decay, pull, average.data(), current.data());
}

void DeviceEngine::download(const float* state, std::span<float> values) const {
  const auto* from = reinterpret_cast<const std::byte*>(state);
  auto* to = reinterpret_cast<std::byte*>(values.data());
  for (size_t left = values.size_bytes(); left > 0;) {
    const size_t piece = std::min(left, transfer_->size_bytes());
    stream_->copy(transfer_->data(), from, piece, CopyKind::device_to_host);
    stream_->synchronize();
    to = std::copy_n(transfer_->data(), piece, to);
    from += piece;
    left -= piece;
  }
}

void DeviceEngine::to_device(const void* host, void* device, int64_t bytes) const {
  const auto* from = static_cast<const std::byte*>(host);
  auto* to = static_cast<std::byte*>(device);
  for (size_t left = static_cast<size_t>(bytes); left > 0;) {
    const size_t piece = std::min(left, transfer_->size_bytes());
    std::copy_n(from, piece, transfer_->data());
    stream_->copy(to, transfer_->data(), piece, CopyKind::host_to_device);
    stream_->synchronize();
    from += piece;
    to += piece;
    left -= piece;
  }
}

void DeviceEngine::upload(std::span<const float> values, float* state) {
  to_device(values.data(), state, static_cast<int64_t>(values.size_bytes()));
}

void DeviceEngine::download_parameters(const float* state, std::span<float> values) const {
  std::vector<float> flat(static_cast<size_t>(layout_.parameter_numbers()));
  download(state, flat);
  for_each_number(layout_, parameter_table_,
                  [&](int64_t to, int64_t from) { values[to] = flat[from]; });
}

void DeviceEngine::upload_parameters(std::span<const float> values, float* state) {
  std::vector<float> flat(static_cast<size_t>(layout_.parameter_numbers()));
  for_each_number(layout_, parameter_table_,
                  [&](int64_t from, int64_t to) { flat[to] = values[from]; });
  upload(flat, state);
}

std::vector<MemoryLine> DeviceEngine::memory_lines() const { return lines_of(memory_->sizes()); }

std::string DeviceEngine::memory_summary() const {
  const std::string all = "  in total " + std::to_string(planned_bytes() / (int64_t{1} << 20)) +
                          " MiB on " + device_.name();
  if (!options_.batches) return all + ": no batches\n";
  return all + ": " + std::to_string(micro_batches_) +
         (micro_batches_ == 1 ? " micro-batch of " : " micro-batches of ") +
         std::to_string(options_.micro_batch_size) + " samples\n";
}

std::vector<std::string> DeviceEngine::implementations() const {
  std::vector<std::string> all = evaluation_.implementations;
  for (const std::string& name : training_.implementations) {
    if (std::ranges::find(all, name) == all.end()) all.push_back(name);
  }
  all.push_back(ops_->name());
  if (!warning().empty()) all.push_back(warning());
  return all;
}

std::string DeviceEngine::warning() const {
  return graphs_.problem().empty() ? "" : "no graphs: " + graphs_.problem();
}

}  // namespace stoker
