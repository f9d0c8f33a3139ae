// What a device engine queues: steps, updates, evaluation.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "train/device/engine.h"
#include "train/engine/engine_arguments.h"

namespace stoker {
namespace {

constexpr int64_t kFloat = sizeof(float);

DeviceMix device_mix(const Mix& mix) {
  return {
      static_cast<int>(mix.kind), mix.lambda, mix.box.x, mix.box.y, mix.box.width, mix.box.height};
}

}  // namespace

DeviceRun DeviceEngine::run_of(const DeviceTape& tape, bool averaged) const {
  DeviceRun run;
  run.arena = memory_->at(DevicePiece::arena);
  run.plan = &tape.plan;
  run.parameters = state(averaged ? StateKind::average : StateKind::parameters);
  run.statistics = state(averaged ? StateKind::average_statistics : StateKind::statistics);
  run.weights = options_.precision == Precision::bf16
                    ? memory_->at(DevicePiece::weights)
                    : reinterpret_cast<const std::byte*>(run.parameters);
  return run;
}

void DeviceEngine::load_weights(bool averaged) {
  const Loaded wanted = averaged ? Loaded::average : Loaded::parameters;
  if (loaded_ == wanted || options_.precision == Precision::fp32) return;
  ops_->narrow(layout_.parameter_floats(),
               state(averaged ? StateKind::average : StateKind::parameters),
               memory_->at(DevicePiece::weights));
  loaded_ = wanted;
}

std::unique_ptr<DeviceGraph> DeviceEngine::capture(const std::function<void()>& work) {
  ops_->begin_capture();
  try {
    work();
  } catch (...) {
    try {
      ops_->end_capture();  // the stream must run again what is queued
    } catch (const std::runtime_error&) {
      // Says no more than what was thrown first.
    }
    throw;
  }
  return ops_->end_capture();
}

// Runs `work`, from the second time on as a graph. `ready`: what it loads lazily is loaded. Where
// it cannot be captured it is queued piece by piece for good: slower, the same numbers, and
// warning() says so.
void DeviceEngine::captured(std::unique_ptr<DeviceGraph>& graph, bool ready,
                            const std::function<void()>& work) {
  if (!tuning_.graphs || !ready || !graph_problem_.empty()) return work();
  if (graph == nullptr) {
    try {
      graph = capture(work);
    } catch (const std::runtime_error& error) {
      graph_problem_ = error.what();
      return work();
    }
  }
  graph->launch();
}

// Labels, weights and pixels go where the captured work reads them.
void DeviceEngine::load_shard(const BatchRows& batch, int shard) {
  const int rows = options_.micro_batch_rows;
  const int64_t image = static_cast<int64_t>(net_.input.width) * net_.input.height * 3;
  const int64_t first = static_cast<int64_t>(shard) * rows;
  ops_->copy(memory_->at(DevicePiece::row_labels), batch.labels + first,
             rows * int64_t{sizeof(int32_t)});
  ops_->copy(memory_->at(DevicePiece::row_weights), batch.weights + first, rows * kFloat);
  ops_->load_mixed(image_, batch.images + first * image, memory_->at<DeviceMix>(DevicePiece::mix),
                   run_of(training_, false).at(training_.input));
}

void DeviceEngine::run_bucket(const DeviceBucket& bucket) {
  DeviceRun run = run_of(training_, false);
  run.labels = memory_->at<int32_t>(DevicePiece::row_labels);
  run.row_weights = memory_->at<float>(DevicePiece::row_weights);
  run.mix = memory_->at<DeviceMix>(DevicePiece::mix);
  run.part = memory_->at<float>(shards_ > 1 ? DevicePiece::shard_part : DevicePiece::part);
  run.narrow_gradients = memory_->at(DevicePiece::narrow_gradients);
  training_.run(run, bucket.begin_step, bucket.end_step);
  if (options_.precision == Precision::bf16 && bucket.chunks > 0) {
    ops_->widen(memory_->at<TensorChunk>(DevicePiece::conv_chunks) + bucket.first_chunk,
                bucket.chunks, run.narrow_gradients, run.part);
  }
}

// Into the sum of the shards before.
void DeviceEngine::add_shard(int shard, PartRange range) {
  const float* from = memory_->at<float>(DevicePiece::shard_part) + range.begin;
  const int64_t count = range.end - range.begin;
  if (shard == 0) {
    ops_->copy(part_ + range.begin, from, count * kFloat);
  } else {
    ops_->accumulate(count, from, part_ + range.begin);
  }
}

void DeviceEngine::forward_backward(const BatchRows& batch, const Mix& mix) {
  require_training(options_, "forward_backward");
  const DeviceMix wanted = device_mix(mix);
  std::memcpy(mixes_->begin(), &wanted, sizeof wanted);
  mixes_->upload();
  load_weights(false);
  ops_->push_range("forward and backward");
  for (int shard = 0; shard < shards_; ++shard) {
    load_shard(batch, shard);
    const bool ready = stepped_;
    for (size_t b = 0; b < buckets_.size(); ++b) {
      ops_->push_range("bucket");
      captured(step_graphs_[b], ready, [&] { run_bucket(buckets_[b]); });
      if (shards_ > 1) add_shard(shard, buckets_[b].range);
      if (bucket_ready_ && shard == shards_ - 1) bucket_ready_(buckets_[b].range);
      ops_->pop_range();
    }
    stepped_ = true;
  }
  ops_->pop_range();
}

void DeviceEngine::update(const UpdateArgs& args) {
  require_tensors(options_, "update", args.tensors, parameter_table_.size());
  for (size_t t = 0; t < args.tensors.size(); ++t) {
    if (left_out_[t] && !args.tensors[t].frozen) {
      throw std::logic_error("update: '" + parameter_table_[t].name +
                             "' was expected to be frozen; it has no gradient");
    }
  }
  const DeviceRates rates{args.momentum, args.nesterov ? 1 : 0, args.decoupled ? 1 : 0};
  std::byte* out = rates_->begin();
  std::memcpy(out, &rates, sizeof rates);
  out += sizeof rates;
  for (const TensorUpdate& tensor : args.tensors) {
    const DeviceRate rate{tensor.learning_rate, tensor.weight_decay, tensor.frozen ? 1 : 0};
    std::memcpy(out, &rate, sizeof rate);
    out += sizeof rate;
  }
  rates_->upload();
  const bool narrow = options_.precision == Precision::bf16;
  ops_->push_range("update");
  captured(update_graph_, updates_ > 0, [&] {
    auto* verdict = memory_->at<UpdateVerdict>(DevicePiece::verdict);
    ops_->decide(update_, part_, verdict, memory_->at(DevicePiece::decide_scratch));
    ops_->sgd(update_, memory_->at<DeviceRates>(DevicePiece::rates), verdict, part_,
              state(StateKind::parameters), state(StateKind::momenta),
              narrow ? memory_->at(DevicePiece::weights) : nullptr);
    ops_->move_statistics(update_, verdict, part_, state(StateKind::statistics));
  });
  ops_->pop_range();
  totals_->fetch(updates_++);
  if (loaded_ != Loaded::parameters) loaded_ = Loaded::nothing;
}

StepTotals DeviceEngine::totals_of(int64_t update) {
  require_training(options_, "totals");
  if (update < 0 || update >= updates_ || update < updates_ - kTotalsKept) {
    throw std::logic_error("totals of update " + std::to_string(update) + ": there were " +
                           std::to_string(updates_) + ", the last " + std::to_string(kTotalsKept) +
                           " are kept");
  }
  return totals_->totals_of(update);
}

void DeviceEngine::blend_average(float decay, bool pull) {
  ensure_average();
  ops_->blend(layout_.parameter_floats(), decay, pull, state(StateKind::average),
              state(StateKind::parameters));
  ops_->blend(layout_.statistics_floats(), decay, pull, state(StateKind::average_statistics),
              state(StateKind::statistics));
  if (pull || loaded_ == Loaded::average) loaded_ = Loaded::nothing;
}

void DeviceEngine::forward(const BatchRows& batch, const View& view, bool averaged,
                           std::span<float> logits) {
  require_forward(options_, net_, view, logits);
  if (averaged) ensure_average();
  load_weights(averaged);
  ops_->push_range("evaluation");
  const int rows = options_.micro_batch_rows;
  const int64_t image = static_cast<int64_t>(net_.input.width) * net_.input.height * 3;
  for (int shard = 0; shard < shards_; ++shard) {
    const int64_t first = static_cast<int64_t>(shard) * rows;
    DeviceRun run = run_of(evaluation_, averaged);
    run.logits = memory_->at<float>(DevicePiece::logits) + first * logit_stride_;
    ops_->load_view(image_, batch.images + first * image, view, run.at(evaluation_.input));
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

}  // namespace stoker
