#include "train/graph/net_engine.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace stoker {
namespace {

bool is_statistics(StateKind kind) {
  return kind == StateKind::statistics || kind == StateKind::average_statistics;
}
bool is_average(StateKind kind) {
  return kind == StateKind::average || kind == StateKind::average_statistics;
}

const EngineOptions& checked(const std::string& who, const NetSpec& net, const EngineOptions& o) {
  const auto reject = [&](const std::string& why) {
    throw std::invalid_argument(who + " for '" + net.name + "': " + why);
  };
  if (o.rows < 1 || o.micro_batch_size < 1 || o.rows % o.micro_batch_size != 0) {
    reject(std::to_string(o.rows) + " samples are not a multiple of " +
           std::to_string(o.micro_batch_size) + " samples per micro-batch");
  }
  if (o.nominal_rows < o.rows) {
    reject(std::to_string(o.nominal_rows) + " nominal samples are fewer than this replica's " +
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

}  // namespace

NetEngine::NetEngine(const std::string& who, const NetSpec& net, const EngineOptions& options,
                     const FusionRules& fusion)
    : net_(net),
      options_(checked(who, net, options)),
      parameter_table_(parameter_table(net)),
      statistics_table_(statistics_table(net)),
      layout_(net, fusion),
      micro_batches_(options.rows / options.micro_batch_size),
      left_out_(parameter_table_.size(), false) {}

void NetEngine::require_training(const char* what) const {
  if (options_.training) return;
  throw std::logic_error(std::string(what) + ": this engine was made for evaluation only");
}

void NetEngine::require_batches(const char* what) const {
  if (options_.batches) return;
  throw std::logic_error(std::string(what) + ": this engine was made for no batches");
}

void NetEngine::require_tensors(const char* what, std::span<const TensorUpdate> tensors) const {
  require_training(what);
  if (tensors.size() == parameter_table_.size()) return;
  throw std::invalid_argument(std::string(what) + ": " + std::to_string(tensors.size()) +
                              " tensors, not " + std::to_string(parameter_table_.size()));
}

void NetEngine::expect_frozen(std::span<const TensorUpdate> tensors) {
  require_tensors("expect_frozen", tensors);
  bool changed = false, thawed = false;
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (left_out_[t] == tensors[t].frozen) continue;
    changed = true;
    left_out_[t] = tensors[t].frozen;
    if (!tensors[t].frozen) {
      thawed = true;
    } else {
      clear_gradient(layout_.tensors()[t]);
    }
  }
  if (changed) leave_out(thawed);
}

void NetEngine::forward_backward(const BatchRows& batch) {
  require_training("forward_backward");
  require_batches("forward_backward");
  if (!options_.accumulates && !(batch.first && batch.last)) {
    throw std::invalid_argument("forward_backward: this engine takes only whole batches");
  }
  load_weights(false);
  run_training(batch);
}

void NetEngine::update(const UpdateArgs& args) {
  require_tensors("update", args.tensors);
  if (args.kind != options_.optimizer) {
    throw std::invalid_argument("update: this engine was made for another optimizer");
  }
  if (args.clip_norm > 0 && !options_.clips) {
    throw std::invalid_argument("update: this engine was not made to clip gradients");
  }
  for (size_t t = 0; t < args.tensors.size(); ++t) {
    if (left_out_[t] && !args.tensors[t].frozen) {
      throw std::logic_error("update: '" + parameter_table_[t].name +
                             "' was expected to be frozen; it has no gradient");
    }
  }
  if (!apply(args) || loaded_ != Loaded::parameters) weights_changed();
}

void NetEngine::forward(const BatchRows& batch, const View& view, bool averaged,
                        std::span<float> logits) {
  require_batches("forward");
  const int64_t wanted = static_cast<int64_t>(options_.rows) * net_.classes;
  if (static_cast<int64_t>(logits.size()) != wanted) {
    throw std::invalid_argument("forward: room for " + std::to_string(logits.size()) +
                                " logits, not " + std::to_string(wanted));
  }
  if (std::abs(view.shift_x) >= net_.input.width || std::abs(view.shift_y) >= net_.input.height) {
    throw std::invalid_argument("forward: a shift by " + std::to_string(view.shift_x) + ", " +
                                std::to_string(view.shift_y) + " leaves the picture");
  }
  if (averaged) make_average();
  load_weights(averaged);
  run_evaluation(batch, view, averaged, logits);
}

std::span<float> NetEngine::state(StateKind kind) const {
  if (kind == StateKind::momenta) require_training("momenta");
  if (kind == StateKind::second_moments) require_training("second moments");
  if (kind == StateKind::second_moments && !has_second_moments(options_.optimizer)) {
    throw std::logic_error("second moments: this engine was made for an optimizer without them");
  }
  float* at = memory_of(kind);
  if (at == nullptr) {  // no average yet
    at = memory_of(is_statistics(kind) ? StateKind::statistics : StateKind::parameters);
  }
  const int64_t count =
      is_statistics(kind) ? layout_.statistics_numbers() : layout_.parameter_numbers();
  return {at, static_cast<size_t>(count)};
}

UpdatedStates NetEngine::updated_states() const {
  UpdatedStates states{weights(false), state(StateKind::momenta).data()};
  if (has_second_moments(options_.optimizer)) {
    states.second_moments = state(StateKind::second_moments).data();
  }
  return states;
}

void NetEngine::reset_statistics() {
  std::vector<float> values(static_cast<size_t>(layout_.statistics_numbers()), 0.0f);
  for (size_t i = 1; i < statistics_table_.size(); i += 2) {  // variances
    std::fill_n(values.begin() + statistics_table_[i].offset, statistics_table_[i].count, 1.0f);
  }
  upload(values, statistics(false));
}

// Allocates the average on first use, because most runs need none.
void NetEngine::make_average() {
  if (memory_of(StateKind::average) != nullptr) return;
  allocate_average();
  copy(state(StateKind::parameters), weights(true));
  copy(state(StateKind::statistics), statistics(true));
}

void NetEngine::load_weights(bool averaged) {
  const Loaded wanted = averaged ? Loaded::average : Loaded::parameters;
  if (loaded_ == wanted) return;
  copy_weights(weights(averaged));
  loaded_ = wanted;
}

void NetEngine::blend_average(float decay, bool pull) {
  make_average();
  blend(decay, pull, state(StateKind::average), state(StateKind::parameters));
  blend(decay, pull, state(StateKind::average_statistics), state(StateKind::statistics));
  if (pull || loaded_ == Loaded::average) weights_changed();
}

int64_t NetEngine::held(StateKind kind) const {
  return total_count(is_statistics(kind) ? statistics_table_ : parameter_table_);
}

void NetEngine::require_state(const char* what, size_t given, int64_t wanted) const {
  if (static_cast<int64_t>(given) == wanted) return;
  throw std::invalid_argument(std::string(what) + ": " + std::to_string(given) + " numbers, not " +
                              std::to_string(wanted));
}

void NetEngine::read(StateKind kind, std::span<float> values) const {
  const float* const from = state(kind).data();
  require_state("read", values.size(), held(kind));
  is_statistics(kind) ? download(from, values) : download_parameters(from, values);
}

void NetEngine::write(StateKind kind, std::span<const float> values) {
  require_state("write", values.size(), held(kind));
  if (is_average(kind)) make_average();
  float* const to = state(kind).data();
  if (is_statistics(kind)) return upload(values, to);
  upload_parameters(values, to);
  weights_changed();
}

void NetEngine::copy_state(StateKind kind, std::span<const float> values) {
  if (stream() == nullptr) return Engine::copy_state(kind, values);
  if (is_average(kind)) make_average();
  const std::span<float> to = state(kind);
  require_state("copy_state", values.size(), static_cast<int64_t>(to.size()));
  copy(values, to.data());
  if (!is_statistics(kind)) weights_changed();
}

int64_t NetEngine::planned_bytes() const {
  int64_t bytes = 0;
  for (const MemoryLine& line : memory_lines()) bytes += line.bytes;
  return bytes;
}

std::string NetEngine::describe_memory() const {
  return describe_lines(memory_lines()) + memory_summary();
}

}  // namespace stoker
