#include "train/device/engine.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "train/engine/engine_arguments.h"

namespace stoker {
namespace {

const EngineOptions& checked(const NetSpec& net, const Device& device, const EngineOptions& o) {
  const auto reject = [&](const std::string& why) {
    throw std::invalid_argument(device.name() + ": engine for '" + net.name + "': " + why);
  };
  if (o.rows < 1 || o.micro_batch_rows < 1 || o.rows % o.micro_batch_rows != 0) {
    reject(std::to_string(o.rows) + " rows are not a multiple of " +
           std::to_string(o.micro_batch_rows) + " rows per shard");
  }
  if (o.nominal_rows < o.rows) {
    reject(std::to_string(o.nominal_rows) + " nominal rows are fewer than this replica's " +
           std::to_string(o.rows));
  }
  if (!(o.label_smoothing >= 0 && o.label_smoothing < 1)) {
    reject("label smoothing " + std::to_string(o.label_smoothing) + " is not in [0, 1)");
  }
  for (size_t c = 0; c < o.stddev.size(); ++c) {
    if (!(o.stddev[c] > 0)) {
      reject("the deviation of channel " + std::to_string(c) + " is " +
             std::to_string(o.stddev[c]) + "; it must be positive");
    }
  }
  return o;
}

constexpr int64_t kFloat = sizeof(float);
// Large enough that a state takes few copies, small enough to stay locked as long as the engine
// lives.
constexpr int64_t kTransferBytes = int64_t{4} << 20;

}  // namespace

DeviceEngine::DeviceEngine(const NetSpec& net, const EngineOptions& options,
                           const DeviceTuning& tuning, Device& device,
                           const DeviceOpsFactory& make_ops)
    : net_(net),
      options_(checked(net, device, options)),
      tuning_(tuning),
      parameter_table_(parameter_table(net)),
      statistics_table_(statistics_table(net)),
      layout_(net, tuning.input_channels),
      shards_(options.rows / options.micro_batch_rows),
      logit_stride_((net.classes + 7) / 8 * 8),
      device_(device),
      stream_(device.make_stream()),
      ops_(make_ops(device, *stream_)) {
  build_tapes();
  allocate();
}

DeviceEngine::~DeviceEngine() {
  try {
    stream_->synchronize();  // memory and rings go while nothing uses them
  } catch (const std::exception&) {
    // A device that failed has told so before; there is nothing left to wait for.
  }
}

void DeviceEngine::build_tapes() {
  evaluation_ =
      build_device_tape(net_, device_tape_options(options_, tuning_, false), layout_, ops_.get());
  if (options_.training) {
    training_ =
        build_device_tape(net_, device_tape_options(options_, tuning_, true), layout_, ops_.get());
    buckets_ = plan_buckets(training_, layout_, 0);
    step_graphs_.resize(buckets_.size());
  }
  image_ = {options_.micro_batch_rows, net_.input.height, net_.input.width,
            evaluation_.nodes[0].shape.channels, options_.precision};
  std::ranges::copy(options_.mean, image_.mean);
  std::ranges::copy(options_.stddev, image_.stddev);
}

void DeviceEngine::allocate() {
  memory_ = std::make_unique<DeviceEngineMemory>(
      net_, options_, tuning_, device_engine_sizes(options_, layout_, training_, evaluation_),
      device_, *ops_);
  ops_->zero(memory_->data(), memory_->allocated());
  logits_there_ = device_.make_event();
  host_logits_ = device_.allocate(static_cast<size_t>(options_.rows) * logit_stride_ * kFloat,
                                  MemoryKind::pinned);
  const int64_t largest_state =
      std::max(layout_.parameter_floats(), layout_.statistics_floats()) * kFloat;
  transfer_ = device_.allocate(static_cast<size_t>(std::min(kTransferBytes, largest_state)),
                               MemoryKind::pinned);
  std::vector<float> statistics(layout_.statistics_floats(), 0.0f);
  for (size_t i = 1; i < statistics_table_.size(); i += 2) {  // variances
    std::fill_n(statistics.begin() + statistics_table_[i].offset, statistics_table_[i].count, 1.0f);
  }
  write(StateKind::statistics, statistics);
  if (!options_.training) return;
  left_out_.assign(parameter_table_.size(), false);
  part_ = memory_->at<float>(DevicePiece::part);
  const auto upload = [&](const auto& list, DevicePiece piece) {
    to_device(list.data(), memory_->at(piece), memory_->sizes()[piece]);
    return static_cast<int>(list.size());
  };
  update_.chunks = memory_->at<TensorChunk>(DevicePiece::chunks);
  update_.chunk_count = upload(layout_.chunks(false), DevicePiece::chunks);
  upload(layout_.chunks(true), DevicePiece::conv_chunks);
  update_.channels = memory_->at<StatisticChannel>(DevicePiece::statistic_channels);
  update_.channel_count = upload(layout_.statistic_channels(options_.micro_batch_rows),
                                 DevicePiece::statistic_channels);
  update_.floats = layout_.part_floats();
  update_.moments = layout_.moments();
  update_.totals = layout_.totals();
  update_.nominal_rows = static_cast<float>(options_.nominal_rows);
  mixes_ = std::make_unique<DeviceArgsRing>(device_, *stream_, memory_->at(DevicePiece::mix),
                                            memory_->sizes()[DevicePiece::mix]);
  rates_ = std::make_unique<DeviceArgsRing>(device_, *stream_, memory_->at(DevicePiece::rates),
                                            memory_->sizes()[DevicePiece::rates]);
  totals_ = std::make_unique<DeviceTotalsRing>(device_, *stream_,
                                               memory_->at<UpdateVerdict>(DevicePiece::verdict));
}

std::span<float> DeviceEngine::reduced() {
  return {part_, static_cast<size_t>(layout_.part_floats())};
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
    const DeviceTensor& tensor = layout_.tensors()[t];
    for (const DevicePiece piece : {DevicePiece::part, DevicePiece::shard_part}) {
      if (memory_->sizes()[piece] == 0) continue;
      ops_->zero(memory_->at<float>(piece) + tensor.offset, tensor.count * kFloat);
    }
    if (options_.precision == Precision::bf16) {
      ops_->zero(memory_->at(DevicePiece::narrow_gradients) + tensor.offset * 2, tensor.count * 2);
    }
  }
  if (!changed) return;
  training_.leave_out(left_out_, layout_);
  for (auto& graph : step_graphs_) graph.reset();
  // Steps that come back may never have run: what they load lazily must not be loaded in a capture.
  if (thawed) stepped_ = false;
}

bool DeviceEngine::reduce_in_buckets(int64_t bytes, std::function<void(PartRange)> ready) {
  require_training(options_, "reduce_in_buckets");
  if (bytes < 1) {
    throw std::invalid_argument("buckets of " + std::to_string(bytes) + " bytes");
  }
  buckets_ = plan_buckets(training_, layout_, bytes);
  // They cut the same steps elsewhere: what has run stays ready to be captured.
  step_graphs_.clear();
  step_graphs_.resize(buckets_.size());
  bucket_ready_ = std::move(ready);
  return true;
}

int64_t DeviceEngine::planned_bytes() const { return memory_->sizes().total(); }

std::string DeviceEngine::describe_memory() const {
  return describe(memory_->sizes()) + "  in total " +
         std::to_string(planned_bytes() / (int64_t{1} << 20)) + " MiB on " + device_.name() + ": " +
         std::to_string(shards_) + (shards_ == 1 ? " shard of " : " shards of ") +
         std::to_string(options_.micro_batch_rows) + " rows\n";
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
  return graph_problem_.empty() ? "" : "no graphs: " + graph_problem_;
}

}  // namespace stoker
