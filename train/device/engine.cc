#include "train/device/engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "train/collective/device_norm_exchange.h"
#include "train/device/rules.h"
#include "train/engine/engine_arguments.h"

namespace stoker {
namespace {

const EngineOptions& checked_for_device(const NetSpec& net, const Device& device,
                                        const EngineOptions& o) {
  require_options(device.name() + ": engine", net, o);
  return o;
}

DeviceRates device_rates(const UpdateArgs& args) {
  DeviceRates rates;
  rates.momentum = args.momentum;
  rates.trust = args.trust;
  rates.clip_norm = args.clip_norm;
  rates.nesterov = args.nesterov ? 1 : 0;
  rates.decoupled = args.decoupled || args.kind == OptimizerKind::adamw ? 1 : 0;
  if (!has_second_moments(args.kind)) return rates;
  const auto count = static_cast<double>(args.count);
  rates.rest1 = static_cast<float>(1 - args.beta1);
  rates.beta2 = static_cast<float>(args.beta2);
  rates.rest2 = static_cast<float>(1 - args.beta2);
  rates.correction1 = static_cast<float>(1 / (1 - std::pow(args.beta1, count)));
  rates.correction2 = static_cast<float>(1 / std::sqrt(1 - std::pow(args.beta2, count)));
  rates.epsilon = args.epsilon;
  return rates;
}

}  // namespace

DeviceEngine::DeviceEngine(const NetSpec& net, const EngineOptions& options,
                           const DeviceTuning& tuning, Device& device,
                           const DeviceOpsFactory& make_ops)
    : net_(net),
      options_(checked_for_device(net, device, options)),
      tuning_(tuning),
      parameter_table_(parameter_table(net)),
      layout_(net, device_fusion(tuning)),
      micro_batches_(options.rows / options.micro_batch_size),
      logit_stride_(logit_stride(net.classes)),
      device_(device),
      stream_(device.make_stream()),
      ops_(make_ops(device, *stream_)),
      graphs_(*ops_, tuning.graphs) {
  if (options_.batches) build_programs();
  allocate();
  if (options_.training) allocate_training();
  if (meets()) options_.device_norms->join(options_.rank, {&device_, stream_.get()});
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
  states_ = std::make_unique<DeviceStateStore>(net_, options_, layout_, *memory_, device_, *stream_,
                                               *ops_);
}

void DeviceEngine::allocate_training() {
  left_out_.assign(parameter_table_.size(), false);
  gradients_ = memory_->at<float>(DevicePiece::gradients);
  const auto upload = [&](const auto& list, DevicePiece piece) {
    states_->to_device(list.data(), memory_->at(piece), memory_->sizes()[piece]);
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
                                                 memory_->at<UpdateVerdict>(DevicePiece::verdict));
}

std::span<float> DeviceEngine::reduced_gradients() {
  return {gradients_, static_cast<size_t>(layout_.numbers())};
}

void DeviceEngine::expect_frozen(std::span<const TensorUpdate> tensors) {
  require_tensors(options_, "expect_frozen", tensors, parameter_table_.size());
  bool changed = false, thawed = false;
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (left_out_[t] == tensors[t].frozen) continue;
    changed = true;
    left_out_[t] = tensors[t].frozen;
    if (!tensors[t].frozen) {
      thawed = true;
      continue;
    }
    const LayoutTensor& tensor = layout_.tensors()[t];
    for (const DevicePiece piece : {DevicePiece::gradients, DevicePiece::micro_batch_gradients}) {
      if (memory_->sizes()[piece] == 0) continue;
      ops_->zero(memory_->at<float>(piece) + tensor.offset, tensor.count * kFloat);
    }
    if (memory_->sizes()[DevicePiece::bf16_gradients] > 0) {
      ops_->zero(memory_->at(DevicePiece::bf16_gradients) + tensor.offset * 2, tensor.count * 2);
    }
  }
  if (!changed) return;
  training_.plan.leave_out(left_out_, layout_);
  for (auto& graph : step_graphs_) graph.reset();
  // Steps that are active again may never have run: they must load what they load lazily outside of
  // a capture.
  if (thawed) stepped_ = false;
}

bool DeviceEngine::reduce_in_buckets(int64_t bytes, std::function<void(BufferRange)> ready) {
  require_training(options_, "reduce_in_buckets");
  require_batches(options_, "reduce_in_buckets");
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
  run.parameters = states_->at(averaged ? StateKind::average : StateKind::parameters);
  run.statistics = states_->at(averaged ? StateKind::average_statistics : StateKind::statistics);
  run.weights = states_->weights(averaged);
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
  const int64_t image = static_cast<int64_t>(net_.input.width) * net_.input.height * 3;
  const int64_t first = static_cast<int64_t>(micro_batch) * rows;
  load_targets(batch, first);
  if (draws_) {
    ops_->set(batch.position + first, memory_->at<int64_t>(DevicePiece::row_position));
  }
  ops_->load_view(image_, batch.images + first * image, View{},
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
bool DeviceEngine::meets() const {
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

void DeviceEngine::forward_backward(const BatchRows& batch) {
  require_batch(options_, batch);
  if (batch.targets != nullptr) require_binary_loss(net_);
  states_->load_weights(false);
  ops_->push_range("forward and backward");
  for (int micro_batch = 0; micro_batch < micro_batches_; ++micro_batch) {
    load_micro_batch(batch, micro_batch);
    const bool ready = stepped_ && !meets();
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
  const DeviceRates rates = device_rates(args);
  std::byte* out = rates_->begin();
  std::memcpy(out, &rates, sizeof rates);
  out += sizeof rates;
  for (const TensorUpdate& tensor : args.tensors) {
    const DeviceRate rate{tensor.learning_rate, tensor.weight_decay, tensor.frozen ? 1 : 0,
                          tensor.adapted ? 1 : 0};
    std::memcpy(out, &rate, sizeof rate);
    out += sizeof rate;
  }
  rates_->upload();
}

void DeviceEngine::queue_update() {
  const auto has = [&](DevicePiece piece) { return memory_->sizes()[piece] > 0; };
  auto* verdict = memory_->at<UpdateVerdict>(DevicePiece::verdict);
  const auto* rates = memory_->at<DeviceRates>(DevicePiece::rates);
  UpdatedStates states{states_->at(StateKind::parameters), states_->at(StateKind::momenta)};
  if (has(DevicePiece::second_moments)) {
    states.second_moments = states_->at(StateKind::second_moments);
  }
  if (has(DevicePiece::weights)) states.copies = memory_->at(DevicePiece::weights);
  ops_->decide(update_, gradients_, verdict, memory_->at(DevicePiece::decide_scratch));
  TensorScale* scales = nullptr;
  if (has(DevicePiece::tensor_scales)) {
    scales = memory_->at<TensorScale>(DevicePiece::tensor_scales);
    ops_->scale_tensors(update_, rates, verdict, gradients_, states.weights,
                        memory_->at<TensorSquares>(DevicePiece::tensor_squares), scales);
  }
  ops_->update(update_, rates, verdict, scales, gradients_, states);
  ops_->move_statistics(update_, verdict, gradients_, states_->at(StateKind::statistics));
}

void DeviceEngine::update(const UpdateArgs& args) {
  require_update(options_, args, parameter_table_.size());
  require_gradients(args.tensors, left_out_, parameter_table_);
  upload_rates(args);
  ops_->push_range("update");
  graphs_.run(update_graph_, updates_ > 0, [&] { queue_update(); });
  ops_->pop_range();
  metrics_->fetch(updates_++);
  states_->update_queued();
}

StepMetrics DeviceEngine::step_metrics_of(int64_t update) {
  require_training(options_, "metrics");
  if (update < 0 || update >= updates_ || update < updates_ - kMetricsKept) {
    throw std::logic_error("metrics of update " + std::to_string(update) + ": there were " +
                           std::to_string(updates_) + ", the last " + std::to_string(kMetricsKept) +
                           " are kept");
  }
  return metrics_->step_metrics_of(update);
}

void DeviceEngine::forward(const BatchRows& batch, const View& view, bool averaged,
                           std::span<float> logits) {
  require_forward(options_, net_, view, logits);
  if (averaged) states_->make_average();
  states_->load_weights(averaged);
  ops_->push_range("evaluation");
  const int rows = options_.micro_batch_size;
  const int64_t image = static_cast<int64_t>(net_.input.width) * net_.input.height * 3;
  for (int micro_batch = 0; micro_batch < micro_batches_; ++micro_batch) {
    const int64_t first = static_cast<int64_t>(micro_batch) * rows;
    DeviceRun run = run_of(evaluation_, averaged);
    run.logits = memory_->at<float>(DevicePiece::logits) + first * logit_stride_;
    ops_->load_view(image_, batch.images + first * image, view, run.at(evaluation_.plan.input));
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
  require_training(options_, "profile");
  require_batches(options_, "profile");
  if (meets()) throw std::logic_error("profile: batch norms would wait for other replicas");
  states_->load_weights(false);
  return time_steps(net_, training_, options_.micro_batch_size, training_run(), runs, device_,
                    *stream_);
}

int64_t DeviceEngine::planned_bytes() const { return memory_->sizes().total(); }

std::string DeviceEngine::describe_memory() const {
  const std::string all = describe(memory_->sizes()) + "  in total " +
                          std::to_string(planned_bytes() / (int64_t{1} << 20)) + " MiB on " +
                          device_.name();
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
