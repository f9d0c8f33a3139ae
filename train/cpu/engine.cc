#include "train/cpu/engine.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <stdexcept>

#include "staging/error_text.h"
#include "train/collective/norm_exchange.h"
#include "train/cpu/rules.h"
#include "train/cpu/update.h"
#include "train/engine/engine_arguments.h"

namespace stoker {
namespace {

const EngineOptions& checked_for_cpu(const NetSpec& net, const EngineOptions& o) {
  const auto reject = [&](const std::string& why) {
    throw std::invalid_argument("CPU engine for '" + net.name + "': " + why);
  };
  if (o.workers < 1) reject(std::to_string(o.workers) + " workers; at least 1 is needed");
  if (!cpu_supports(o.precision)) reject("this CPU has no bf16 instructions; use fp32");
  return o;
}

// The rows of a batch from `first` on, without images.
BatchRows rows_from(BatchRows batch, int64_t first, int classes) {
  batch.images = nullptr;
  batch.labels += first;
  batch.weights += first;
  batch.position += first;
  if (batch.targets != nullptr) batch.targets += first * classes;
  if (batch.mix_labels != nullptr) {
    batch.mix_labels += first;
    batch.mix_weights += first;
  }
  if (batch.results != nullptr) batch.results += first;
  return batch;
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
    : NetEngine("CPU engine", net, checked_for_cpu(net, options), kCpuFusion),
      gaps_(layout_.gaps()),
      input_(net.input, net.input_channels, options.precision,
             activation_layout(net, options.precision, options.norms != nullptr), options.mean,
             options.stddev),
      engine_(dnnl::engine::kind::cpu, 0),
      workers_(std::min(options.workers, micro_batches_)),
      nets_(workers_.size()),
      sum_(micro_batches_) {
  build_nets();
  const MicroBatchNet& first = options_.training ? *nets_[0].training : *nets_[0].evaluation;
  copies_ = std::make_unique<CpuWeightCopies>(net_, layout_, first.conv_layouts(), engine_,
                                              workers_.size());
  parameters_ = float_memory(layout_.parameter_numbers());
  statistics_ = float_memory(layout_.statistics_numbers());
  reset_statistics();
  if (options_.training) allocate_training();
}

void CpuEngine::build_nets() {
  workers_.run([&](int index) {
    Worker& worker = nets_[index];
    const auto build = [&](bool training) {
      return std::make_unique<MicroBatchNet>(net_, plan_options(options_, kCpuFusion, training),
                                             layout_, engine_);
    };
    worker.evaluation = build(false);
    int64_t bytes = worker.evaluation->arena_bytes();
    if (options_.training) {
      worker.training = build(true);
      bytes = std::max(bytes, worker.training->arena_bytes());
    }
    worker.arena = CpuMemory(bytes);
    worker.evaluation->place(worker.arena.data());
    if (worker.training) worker.training->place(worker.arena.data());
  });
}

void CpuEngine::allocate_training() {
  momenta_ = float_memory(layout_.parameter_numbers());
  if (has_second_moments(options_.optimizer)) {
    second_moments_ = float_memory(layout_.parameter_numbers());
  }
  gradients_ = float_memory(gradient_buffer_count() * layout_.numbers());
  if (options_.alone && (micro_batches_ > 1 || options_.accumulates)) {
    for (Worker& worker : nets_) worker.scratch = float_memory(worker.training->scratch_floats());
  }
  if (!options_.alone && options_.accumulates) {
    earlier_ = float_memory(layout_.numbers());
    gradient_pointers_.push_back(earlier_.floats().data());
  }
  for (int i = 0; i < gradient_buffer_count(); ++i) {
    gradient_pointers_.push_back(gradient_buffer(i));
  }
}

std::span<float> CpuEngine::reduced_gradients() {
  const auto count = static_cast<size_t>(layout_.numbers());
  return earlier_.bytes() > 0 ? earlier_.floats() : gradients_.floats().first(count);
}

float* CpuEngine::gradient_buffer(int index) const {
  return gradients_.floats().data() + index * layout_.numbers();
}

void CpuEngine::aim_gradients(MicroBatchRun& run, const Worker& worker, bool first_part) {
  run.gradients = gradient_buffer(options_.alone ? 0 : run.micro_batch);
  if (!options_.alone) return;
  run.sum = &sum_;
  if (run.micro_batch > 0 || !first_part) run.scratch = worker.scratch.floats().data();
}

void CpuEngine::leave_out(bool) {
  for (const Worker& worker : nets_) worker.training->leave_out(left_out_);
}

void CpuEngine::clear_gradient(const LayoutTensor& tensor) {
  for (int i = 0; i < gradient_buffer_count(); ++i) {
    std::fill_n(gradient_buffer(i) + tensor.offset, tensor.count, 0.0f);
  }
}

// The last sum is in the buffer, and what was lost on a wire is sent later: it may have more than
// zeros also where no step writes.
void CpuEngine::clear_sum() {
  for (size_t t = 0; t < left_out_.size(); ++t) {
    if (left_out_[t]) clear_gradient(layout_.tensors()[t]);
  }
  for (const LayoutGap& gap : gaps_) std::fill_n(gradient_buffer(0) + gap.offset, gap.count, 0.0f);
}

// Micro-batches begin in ascending order: synchronised batch norms need that (norm_exchange.h).
void CpuEngine::for_each_micro_batch(const std::function<void(Worker&, int)>& job) {
  std::atomic<int> next{0};
  workers_.run([&](int worker) {
    for (int i = next++; i < micro_batches_; i = next++) job(nets_[worker], i);
  });
}

MicroBatchRun CpuEngine::run_of(bool averaged) const {
  MicroBatchRun run;
  run.parameters = weights(averaged);
  run.statistics = statistics(averaged);
  run.forward_weights = &copies_->forward();
  return run;
}

void CpuEngine::require_labels_in_range(const int32_t* labels, const char* what) const {
  for (int row = 0; row < options_.rows; ++row) {
    if (labels[row] >= 0 && labels[row] < label_count(net_)) continue;
    throw std::invalid_argument("row " + std::to_string(row) + " has " + what + " " +
                                std::to_string(labels[row]) + "; '" + net_.name + "' has " +
                                std::to_string(label_count(net_)) + " classes");
  }
}

std::span<const float* const> CpuEngine::gradient_buffers() const {
  const std::span<const float* const> all = gradient_pointers_;
  return earlier_.bytes() > 0 && !has_earlier_ ? all.subspan(1) : all;
}

// A failure here is one of all replicas: they may wait for this micro-batch, and other workers of
// this engine for theirs.
void CpuEngine::run_net(MicroBatchNet& net, const MicroBatchRun& run) {
  try {
    net.run(run);
  } catch (...) {
    sum_.give_up(run.micro_batch);
    if (options_.norms != nullptr) options_.norms->abort(current_error_text());
    throw;
  }
}

void CpuEngine::run_training(const BatchRows& batch) {
  if (batch.targets != nullptr) {
    require_targets(net_, options_.rows, batch);
  } else {
    require_labels_in_range(batch.labels, "label");
  }
  if (batch.mix_labels != nullptr) require_labels_in_range(batch.mix_labels, "second label");
  if (earlier_.bytes() == 0 && batch.first) clear_sum();
  sum_.begin();
  const int rows = options_.micro_batch_size;
  for_each_micro_batch([&](Worker& worker, int micro_batch) {
    const int64_t first = static_cast<int64_t>(micro_batch) * rows;
    input_.load(batch.images + first * image_bytes(), rows, worker.training->input());
    MicroBatchRun run = run_of(false);
    run.backward_weights = &copies_->backward();
    run.rows = rows_from(batch, first, net_.classes);
    run.micro_batch = micro_batch;
    aim_gradients(run, worker, batch.first);
    run_net(*worker.training, run);
  });
  has_earlier_ = !batch.first;
  if (batch.last || options_.alone) return;
  const std::span<const float* const> own = std::span(gradient_pointers_).subspan(1);
  add_buffers(own, batch.first, earlier_.floats(), workers_);
}

bool CpuEngine::apply(const UpdateArgs& args) {
  const float* reduced = reduced_gradients().data();
  const FiniteCheck check = check_finite(layout_, options_.nominal_rows, reduced, workers_);
  gradients_finite_ = check.finite != 0;
  gradient_norm_ = std::numeric_limits<double>::quiet_NaN();
  if (check.apply == 0) return false;
  const UpdatedStates states = updated_states();
  const GradientScales scales =
      gradient_scales(args, check.gradient_scale, layout_, reduced, states.weights, workers_);
  gradient_norm_ = scales.norm;
  update_tensors(args, scales.of_tensors, layout_, reduced, states, workers_);
  move_statistics(layout_, options_.micro_batch_size, reduced, statistics(false));
  return false;
}

StepMetrics CpuEngine::step_metrics() {
  require_training("metrics");
  StepMetrics metrics =
      step_metrics_from(reduced_gradients().data() + layout_.metrics(), gradients_finite_);
  metrics.gradient_norm = gradient_norm_;
  return metrics;
}

void CpuEngine::run_evaluation(const BatchRows& batch, const View& view, bool averaged,
                               std::span<float> logits) {
  const int rows = options_.micro_batch_size;
  for_each_micro_batch([&](Worker& worker, int micro_batch) {
    const int64_t first = static_cast<int64_t>(micro_batch) * rows;
    input_.load(batch.images + first * image_bytes(), rows, view, worker.evaluation->input());
    MicroBatchRun run = run_of(averaged);
    run.logits = logits.data() + first * net_.classes;
    worker.evaluation->run(run);
  });
}

void CpuEngine::copy_weights(const float* masters) {
  workers_.run([&](int worker) { copies_->prepare(worker, masters); });
}

float* CpuEngine::memory_of(StateKind kind) const {
  const CpuMemory* const memories[] = {
      &parameters_, &momenta_, &average_, &statistics_, &average_statistics_, &second_moments_};
  return memories[static_cast<size_t>(kind)]->floats().data();
}

void CpuEngine::allocate_average() {
  average_ = CpuMemory(parameters_.bytes());
  average_statistics_ = CpuMemory(statistics_.bytes());
}

void CpuEngine::copy(std::span<const float> from, float* to) { std::ranges::copy(from, to); }

void CpuEngine::blend(float decay, bool pull, std::span<float> average, std::span<float> current) {
  stoker::blend(decay, pull, average, current, workers_);
}

void CpuEngine::download(const float* state, std::span<float> values) const {
  std::copy_n(state, values.size(), values.begin());
}

void CpuEngine::upload(std::span<const float> values, float* state) { copy(values, state); }

void CpuEngine::download_parameters(const float* state, std::span<float> values) const {
  convert(state, values.data(), true);
}

void CpuEngine::upload_parameters(std::span<const float> values, float* state) {
  convert(values.data(), state, false);
}

void CpuEngine::convert(const float* from, float* to, bool to_canonical) const {
  for (size_t t = 0; t < parameter_table_.size(); ++t) {
    const int64_t canonical = parameter_table_[t].offset, flat = layout_.tensors()[t].offset;
    std::copy_n(from + (to_canonical ? flat : canonical), parameter_table_[t].count,
                to + (to_canonical ? canonical : flat));
  }
  // The convolutions' weights are converted on the workers, which may use oneDNN.
  workers_.run([&](int worker) {
    const dnnl::stream stream(engine_);
    const auto& layouts = copies_->layouts();
    for (size_t i = worker; i < layouts.size(); i += workers_.size()) {
      const ConvLayout& conv = layouts[i];
      if (conv.master == conv.canonical) continue;
      const int t = layout_.tensor_of(conv.node, ParameterKind::conv_weight);
      const int64_t canonical = parameter_table_[t].offset, flat = layout_.tensors()[t].offset;
      dnnl::memory source(to_canonical ? conv.master : conv.canonical, engine_,
                          const_cast<float*>(from + (to_canonical ? flat : canonical)));
      dnnl::memory target(to_canonical ? conv.canonical : conv.master, engine_,
                          to + (to_canonical ? canonical : flat));
      dnnl::reorder(source, target).execute(stream, source, target);
    }
  });
}

std::vector<MemoryLine> CpuEngine::memory_lines() const {
  const int64_t states = parameters_.bytes() + statistics_.bytes();
  int64_t arenas = 0, scratches = 0;
  for (const Worker& worker : nets_) {
    arenas += worker.arena.bytes();
    scratches += worker.scratch.bytes();
  }
  return {{"parameters and statistics", states},
          {"momenta", momenta_.bytes() + second_moments_.bytes()},
          {"average (if used)", states},
          {"gradients of the micro-batches and their sum",
           gradients_.bytes() + earlier_.bytes() + scratches},
          {"weights as the convolutions read them", copies_->bytes()},
          {"activations, gradients and workspaces", arenas}};
}

std::string CpuEngine::memory_summary() const {
  char line[160];
  std::snprintf(line, sizeof line,
                "%9.1f MiB  CPU engine: %d micro-batch%s of %d samples, %d worker%s\n",
                static_cast<double>(planned_bytes()) / (1 << 20), micro_batches_,
                micro_batches_ == 1 ? "" : "es", options_.micro_batch_size, workers_.size(),
                workers_.size() == 1 ? "" : "s");
  return line;
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
