#include "tests/support/fake_engine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace stoker {
namespace {

constexpr int kFeatures = 4;  // mean of each channel, and 1
constexpr int kMetrics = 4;   // loss, weight, top1, top5
constexpr float kMomentum = 0.1f;

class FakeEngine final : public Engine {
 public:
  FakeEngine(const NetSpec& net, const EngineOptions& options, const FakeEngineFaults& faults)
      : net_(net), options_(options), faults_(faults), table_(parameter_table(net)) {
    if (options.rows % options.micro_batch_size != 0) {
      throw std::invalid_argument("fake engine: samples are not whole micro-batches");
    }
    parameters_.resize(total_count(table_));
    momenta_.resize(parameters_.size());
    if (has_second_moments(options.optimizer)) second_moments_.resize(parameters_.size());
    average_.resize(parameters_.size());
    statistics_.resize(total_count(statistics_table(net)));
    average_statistics_.resize(statistics_.size());
    earlier_.resize(gradient_buffer_floats());
    gradient_pointers_.push_back(earlier_.data());
    gradients_.resize(options.rows / options.micro_batch_size);
    for (auto& buffer : gradients_) {
      buffer.resize(gradient_buffer_floats());
      gradient_pointers_.push_back(buffer.data());
    }
    reduced_.resize(gradient_buffer_floats());
  }

  const NetSpec& net() const override { return net_; }
  Precision precision() const override { return options_.precision; }

  void forward_backward(const BatchRows& batch) override {
    const int64_t step = step_;
    metrics_gone_ = faults_.metrics_lag == 0;
    if (batch.first) has_earlier_ = false;
    if (batch.last) ++step_;
    if (faults_.steps && batch.last) ++*faults_.steps;
    if (step == faults_.throw_at_step) throw std::runtime_error("fake engine: told to throw");
    for (size_t micro_batch = 0; micro_batch < gradients_.size(); ++micro_batch) {
      std::vector<float>& buffer = gradients_[micro_batch];
      buffer.assign(gradient_buffer_floats(), 0.0f);
      for (int i = 0; i < options_.micro_batch_size; ++i) {
        add_row(batch, static_cast<int>(micro_batch) * options_.micro_batch_size + i, buffer);
      }
    }
    if (step == faults_.nan_at_step) {
      gradients_[0][metrics_at()] = std::numeric_limits<float>::quiet_NaN();
    }
    if (batch.last) return;
    if (!options_.accumulates) throw std::logic_error("fake engine: a part of a batch");
    if (!has_earlier_) earlier_.assign(gradient_buffer_floats(), 0.0f);
    has_earlier_ = true;
    for (const auto& buffer : gradients_) {
      for (size_t i = 0; i < buffer.size(); ++i) earlier_[i] += buffer[i];
    }
  }

  int64_t gradient_floats() const override { return learned(); }
  int64_t gradient_buffer_floats() const override { return learned() + kFeatures + kMetrics; }
  std::span<const float* const> gradient_buffers() const override {
    return std::span(gradient_pointers_).subspan(has_earlier_ ? 0 : 1);
  }
  std::span<float> reduced_gradients() override { return reduced_; }

  void update(const UpdateArgs& args) override {
    const StepMetrics sums = sums_now();
    metrics_.push_back(sums);
    metrics_gone_ = false;
    if (!sums.finite || sums.weight_sum <= 0) return;
    const auto scale = static_cast<float>(options_.nominal_rows / sums.weight_sum);
    for (size_t t = 0; t < table_.size(); ++t) {
      const TensorUpdate& rule = args.tensors[t];
      if (rule.frozen) continue;
      const int64_t end = std::min(table_[t].offset + table_[t].count, learned());
      for (int64_t i = table_[t].offset; i < end; ++i) {
        const float gradient = reduced_[i] * scale + rule.weight_decay * parameters_[i];
        if (has_second_moments(options_.optimizer)) {
          adam(args, rule, gradient, i);
          continue;
        }
        momenta_[i] = args.momentum * momenta_[i] + gradient;
        parameters_[i] -= rule.learning_rate *
                          (args.nesterov ? gradient + args.momentum * momenta_[i] : momenta_[i]);
      }
    }
    const float* moments = reduced_.data() + learned();
    for (size_t i = 0; i < statistics_.size(); ++i) {
      const float mean = moments[i % 3] / moments[3];
      statistics_[i] = (1 - kMomentum) * statistics_[i] + kMomentum * mean;
    }
  }

  StepMetrics step_metrics() override {
    return step_metrics_of(static_cast<int64_t>(metrics_.size()) - 1);
  }
  StepMetrics step_metrics_of(int64_t update) override {
    const auto last = static_cast<int64_t>(metrics_.size()) - 1;
    if (metrics_gone_ || update > last ||
        update <= last - (faults_.metrics_lag > 0 ? kMetricsKept : 1)) {
      throw std::logic_error("fake engine: metrics that are not kept were asked for");
    }
    return metrics_[static_cast<size_t>(update)];
  }
  int metrics_lag() const override { return faults_.metrics_lag; }

  void blend_average(float decay, bool pull) override {
    blend(decay, pull, parameters_, average_);
    blend(decay, pull, statistics_, average_statistics_);
  }

  void forward(const BatchRows& batch, const View&, bool averaged,
               std::span<float> logits) override {
    for (int row = 0; row < options_.rows; ++row) {
      const auto values = features(batch, row);
      const auto scores = logits_of(values, averaged ? average_ : parameters_);
      std::copy(scores.begin(), scores.end(), logits.begin() + row * net_.classes);
    }
  }

  void read(StateKind kind, std::span<float> values) const override {
    const auto& from = const_cast<FakeEngine*>(this)->state(kind);
    if (from.size() != values.size()) throw std::logic_error("fake engine: sizes differ");
    std::copy(from.begin(), from.end(), values.begin());
  }
  void write(StateKind kind, std::span<const float> values) override {
    auto& to = state(kind);
    if (to.size() != values.size()) throw std::logic_error("fake engine: sizes differ");
    to.assign(values.begin(), values.end());
  }

  int64_t planned_bytes() const override {
    return static_cast<int64_t>(sizeof(float) * parameters_.size() * 4);
  }
  std::string describe_memory() const override { return "fake: a little\n"; }
  std::vector<std::string> implementations() const override { return {"fake"}; }

 private:
  using Features = std::array<float, kFeatures>;

  StepMetrics sums_now() const {
    const float* sums = reduced_.data() + metrics_at();
    StepMetrics metrics{sums[0], sums[1], sums[2], sums[3], true};
    for (int i = 0; i < kMetrics; ++i) metrics.finite = metrics.finite && std::isfinite(sums[i]);
    return metrics;
  }

  // The classifier consists of this many parameters.
  int64_t learned() const { return int64_t{net_.classes} * kFeatures; }
  int64_t metrics_at() const { return learned() + kFeatures; }

  Features features(const BatchRows& batch, int row) const {
    const int64_t pixels = int64_t{net_.input.width} * net_.input.height;
    const uint8_t* image = batch.images + row * pixels * 3;
    Features result{0, 0, 0, 1};
    for (int64_t i = 0; i < pixels; ++i) {
      for (int c = 0; c < 3; ++c) result[c] += image[3 * i + c];
    }
    for (int c = 0; c < 3; ++c) {
      result[c] = (result[c] / (255.0f * static_cast<float>(pixels)) - options_.mean[c]) /
                  options_.stddev[c];
    }
    return result;
  }

  std::vector<float> logits_of(const Features& values, const std::vector<float>& weights) const {
    std::vector<float> logits(net_.classes);
    for (int k = 0; k < net_.classes; ++k) {
      for (int f = 0; f < kFeatures; ++f) logits[k] += weights[k * kFeatures + f] * values[f];
    }
    return logits;
  }

  void add_row(const BatchRows& batch, int row, std::vector<float>& part) {
    const Features values = features(batch, row);
    const std::vector<float> logits = logits_of(values, parameters_);
    const int label = batch.labels[row];
    const float weight = batch.weights[row];
    const float largest = *std::max_element(logits.begin(), logits.end());
    float sum = 0;
    int ahead = 0;
    for (const float logit : logits) {
      sum += std::exp(logit - largest);
      ahead += logit > logits[label];
    }
    for (int k = 0; k < net_.classes; ++k) {
      const float error = std::exp(logits[k] - largest) / sum - (k == label ? 1.0f : 0.0f);
      for (int f = 0; f < kFeatures; ++f) {
        part[k * kFeatures + f] +=
            weight * error * values[f] / static_cast<float>(options_.nominal_rows);
      }
    }
    float* moments = part.data() + learned();
    for (int f = 0; f < kFeatures; ++f) moments[f] += values[f];
    moments[kFeatures] += weight * (std::log(sum) + largest - logits[label]);
    moments[kFeatures + 1] += weight;
    moments[kFeatures + 2] += ahead < 1 ? weight : 0;
    moments[kFeatures + 3] += ahead < 5 ? weight : 0;
  }

  static void blend(float decay, bool pull, std::vector<float>& current,
                    std::vector<float>& average) {
    for (size_t i = 0; i < current.size(); ++i) {
      average[i] = decay * average[i] + (1 - decay) * current[i];
      if (pull) current[i] = average[i];
    }
  }

  void adam(const UpdateArgs& args, const TensorUpdate& rule, float gradient, int64_t i) {
    const double g = gradient, count = static_cast<double>(args.count);
    const double m = args.beta1 * momenta_[i] + (1 - args.beta1) * g;
    const double v = args.beta2 * second_moments_[i] + (1 - args.beta2) * g * g;
    momenta_[i] = static_cast<float>(m);
    second_moments_[i] = static_cast<float>(v);
    parameters_[i] -=
        static_cast<float>(rule.learning_rate * m / (1 - std::pow(args.beta1, count)) /
                           (std::sqrt(v / (1 - std::pow(args.beta2, count))) + args.epsilon));
  }

  std::vector<float>& state(StateKind kind) {
    switch (kind) {
      case StateKind::parameters:
        return parameters_;
      case StateKind::momenta:
        return momenta_;
      case StateKind::average:
        return average_;
      case StateKind::statistics:
        return statistics_;
      case StateKind::average_statistics:
        return average_statistics_;
      case StateKind::second_moments:
        return second_moments_;
    }
    throw std::logic_error("fake engine: no such state");
  }

  const NetSpec net_;
  const EngineOptions options_;
  const FakeEngineFaults faults_;
  const std::vector<TensorInfo> table_;
  int64_t step_ = 0;
  std::vector<float> parameters_, momenta_, second_moments_, average_, statistics_,
      average_statistics_, reduced_;
  std::vector<std::vector<float>> gradients_;
  std::vector<float> earlier_;  // sum of the batch's earlier parts
  bool has_earlier_ = false;
  std::vector<const float*> gradient_pointers_;
  std::vector<StepMetrics> metrics_;  // per update
  bool metrics_gone_ = false;         // the next step's gradients have taken their place
};

}  // namespace

std::unique_ptr<Engine> make_fake_engine(const NetSpec& net, const EngineOptions& options,
                                         const FakeEngineFaults& faults) {
  return std::make_unique<FakeEngine>(net, options, faults);
}

}  // namespace stoker
