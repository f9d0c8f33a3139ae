#include "train/cpu/engine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "train/engine/engine_arguments.h"

namespace stoker {
namespace {

const EngineOptions& checked(const NetSpec& net, const EngineOptions& o) {
  const auto reject = [&](const std::string& why) {
    throw std::invalid_argument("CPU engine for '" + net.name + "': " + why);
  };
  if (o.rows < 1 || o.micro_batch_rows < 1 || o.rows % o.micro_batch_rows != 0) {
    reject(std::to_string(o.rows) + " rows are not a multiple of " +
           std::to_string(o.micro_batch_rows) + " rows per shard");
  }
  if (o.nominal_rows < o.rows) {
    reject(std::to_string(o.nominal_rows) + " nominal rows are fewer than this replica's " +
           std::to_string(o.rows));
  }
  if (o.workers < 1) reject(std::to_string(o.workers) + " workers; at least 1 is needed");
  if (!(o.label_smoothing >= 0 && o.label_smoothing < 1)) {
    reject("label smoothing " + std::to_string(o.label_smoothing) + " is not in [0, 1)");
  }
  if (!cpu_supports(o.precision)) reject("this CPU has no bf16 instructions; use fp32");
  return o;
}

constexpr int64_t kLine = 16;  // floats of a cache line

int64_t padded_floats(int64_t floats) { return (floats + kLine - 1) / kLine * kLine; }

// How far a part begins after a cache line, so that its largest gradient begins on one: the kernels
// add to gradients in place, and a layer of 24 channels would put all later ones astride (3 % of
// airnet's fp32 step).
int64_t part_lead(const std::vector<TensorInfo>& table) {
  const auto largest = std::ranges::max_element(table, {}, &TensorInfo::count);
  return (kLine - largest->offset % kLine) % kLine;
}

CpuEngineMemory float_memory(int64_t count) {
  return CpuEngineMemory(count * static_cast<int64_t>(sizeof(float)));
}

}  // namespace

bool cpu_engine_available() { return true; }

bool cpu_supports(Precision precision) {
  return precision == Precision::fp32 || onednn::cpu_has(dnnl::cpu_isa::avx512_core_bf16);
}

std::unique_ptr<Engine> make_cpu_engine(const NetSpec& net, const EngineOptions& options) {
  return std::make_unique<CpuEngine>(net, options);
}

CpuEngine::CpuEngine(const NetSpec& net, const EngineOptions& options)
    : net_(net),
      options_(checked(net, options)),
      parameter_table_(parameter_table(net)),
      statistics_table_(statistics_table(net)),
      layout_(part_layout(net)),
      shards_(options.rows / options.micro_batch_rows),
      input_(net.input, options.precision, activation_layout(options.precision), options.mean,
             options.stddev),
      engine_(dnnl::engine::kind::cpu, 0),
      workers_(std::min(options.workers, shards_)),
      nets_(workers_.size()) {
  build_nets();
  allocate();
}

void CpuEngine::build_nets() {
  ShardNetOptions shard;
  shard.rows = options_.micro_batch_rows;
  shard.precision = options_.precision;
  shard.label_smoothing = options_.label_smoothing;
  shard.loss_scale = 1.0f / static_cast<float>(options_.nominal_rows);
  workers_.run([&](int index) {
    Worker& worker = nets_[index];
    ShardNetOptions mine = shard;
    mine.training = false;
    worker.evaluation = std::make_unique<ShardNet>(net_, mine, engine_);
    int64_t bytes = worker.evaluation->arena_bytes();
    if (options_.training) {
      mine.training = true;
      worker.training = std::make_unique<ShardNet>(net_, mine, engine_);
      bytes = std::max(bytes, worker.training->arena_bytes());
    }
    worker.arena = CpuEngineMemory(bytes);
    worker.evaluation->place(worker.arena.data());
    if (worker.training) worker.training->place(worker.arena.data());
  });
  const ShardNet& first = options_.training ? *nets_[0].training : *nets_[0].evaluation;
  weights_ =
      std::make_unique<CpuEngineWeights>(net_, first.conv_layouts(), engine_, workers_.size());
}

void CpuEngine::allocate() {
  const int64_t parameters = total_count(parameter_table_);
  const int64_t statistics = total_count(statistics_table_);
  parameters_ = float_memory(parameters);
  statistics_ = float_memory(statistics);
  for (size_t i = 1; i < statistics_table_.size(); i += 2) {  // variances
    const TensorInfo& info = statistics_table_[i];
    std::fill_n(statistics_.floats().begin() + info.offset, info.count, 1.0f);
  }
  if (!options_.training) return;
  left_out_.assign(parameter_table_.size(), false);
  momenta_ = float_memory(parameters);
  reduced_ = float_memory(layout_.floats);
  const int64_t lead = part_lead(parameter_table_);
  const int64_t stride = padded_floats(lead + layout_.floats);
  parts_ = float_memory(shards_ * stride);
  for (int shard = 0; shard < shards_; ++shard) {
    part_pointers_.push_back(parts_.floats().data() + shard * stride + lead);
  }
}

void CpuEngine::expect_frozen(std::span<const TensorUpdate> tensors) {
  require_tensors(options_, "expect_frozen", tensors, parameter_table_.size());
  bool changed = false;
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (left_out_[t] == tensors[t].frozen) continue;
    changed = true;
    left_out_[t] = tensors[t].frozen;
    if (!tensors[t].frozen) continue;
    for (const float* part : part_pointers_) {
      std::fill_n(const_cast<float*>(part) + parameter_table_[t].offset, parameter_table_[t].count,
                  0.0f);
    }
  }
  if (!changed) return;
  for (const Worker& worker : nets_) worker.training->leave_out(left_out_);
}

void CpuEngine::load_weights(bool averaged) {
  const Loaded wanted = averaged ? Loaded::average : Loaded::parameters;
  if (loaded_ == wanted) return;
  const float* masters = (averaged ? average_ : parameters_).floats().data();
  workers_.run([&](int worker) { weights_->prepare(worker, masters); });
  loaded_ = wanted;
}

void CpuEngine::for_each_shard(const std::function<void(Worker&, int)>& job) {
  std::atomic<int> next{0};
  workers_.run([&](int worker) {
    for (int shard = next++; shard < shards_; shard = next++) job(nets_[worker], shard);
  });
}

void CpuEngine::forward_backward(const BatchRows& batch, const Mix& mix) {
  require_training(options_, "forward_backward");
  for (int row = 0; row < options_.rows; ++row) {
    if (batch.labels[row] < 0 || batch.labels[row] >= net_.classes) {
      throw std::invalid_argument("row " + std::to_string(row) + " has label " +
                                  std::to_string(batch.labels[row]) + "; '" + net_.name + "' has " +
                                  std::to_string(net_.classes) + " classes");
    }
  }
  load_weights(false);
  const int rows = options_.micro_batch_rows;
  const int64_t image = static_cast<int64_t>(net_.input.width) * net_.input.height * 3;
  for_each_shard([&](Worker& worker, int shard) {
    const int64_t first = static_cast<int64_t>(shard) * rows;
    input_.load(batch.images + first * image, rows, mix, worker.training->input());
    ShardRun run;
    run.parameters = parameters_.floats().data();
    run.statistics = statistics_.floats().data();
    run.forward_weights = &weights_->forward();
    run.backward_weights = &weights_->backward();
    run.labels = batch.labels + first;
    run.weights = batch.weights + first;
    run.mix = mix;
    run.part = const_cast<float*>(part_pointers_[shard]);
    worker.training->run(run);
  });
}

void CpuEngine::forward(const BatchRows& batch, const View& view, bool averaged,
                        std::span<float> logits) {
  require_forward(options_, net_, view, logits);
  if (averaged) ensure_average();
  load_weights(averaged);
  const int rows = options_.micro_batch_rows;
  const int64_t image = static_cast<int64_t>(net_.input.width) * net_.input.height * 3;
  for_each_shard([&](Worker& worker, int shard) {
    const int64_t first = static_cast<int64_t>(shard) * rows;
    input_.load(batch.images + first * image, rows, view, worker.evaluation->input());
    ShardRun run;
    run.parameters = (averaged ? average_ : parameters_).floats().data();
    run.statistics = (averaged ? average_statistics_ : statistics_).floats().data();
    run.forward_weights = &weights_->forward();
    run.logits = logits.data() + first * net_.classes;
    worker.evaluation->run(run);
  });
}

std::vector<CpuEngine::MemoryLine> CpuEngine::memory_lines() const {
  const auto floats = [](int64_t count) { return count * static_cast<int64_t>(sizeof(float)); };
  const int64_t parameters = floats(total_count(parameter_table_));
  const int64_t statistics = floats(total_count(statistics_table_));
  int64_t arenas = 0;
  for (const Worker& worker : nets_) arenas += worker.arena.bytes();
  return {{"parameters and statistics", parameters + statistics},
          {"momenta", momenta_.bytes()},
          {"average (if used)", parameters + statistics},
          {"parts of the shards and their sum", parts_.bytes() + reduced_.bytes()},
          {"weights as the convolutions read them", weights_->bytes()},
          {"activations, gradients and workspaces", arenas}};
}

int64_t CpuEngine::planned_bytes() const {
  int64_t bytes = 0;
  for (const MemoryLine& line : memory_lines()) bytes += line.bytes;
  return bytes;
}

std::string CpuEngine::describe_memory() const {
  std::string text;
  char buffer[160];
  for (const MemoryLine& line : memory_lines()) {
    std::snprintf(buffer, sizeof buffer, "%9.1f MiB  %s\n", line.bytes / 1048576.0, line.what);
    text += buffer;
  }
  std::snprintf(buffer, sizeof buffer,
                "%9.1f MiB  CPU engine: %d shard%s of %d rows, %d worker%s\n",
                planned_bytes() / 1048576.0, shards_, shards_ == 1 ? "" : "s",
                options_.micro_batch_rows, workers_.size(), workers_.size() == 1 ? "" : "s");
  return text + buffer;
}

std::vector<std::string> CpuEngine::implementations() const {
  std::vector<std::string> all = nets_[0].evaluation->implementations();
  if (!options_.training) return all;
  for (const std::string& name : nets_[0].training->implementations()) {
    if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
  }
  return all;
}

}  // namespace stoker
