#include <atomic>
#include <bit>
#include <cmath>

#include "train/cpu/engine.h"
#include "train/engine/engine_arguments.h"

namespace stoker {
namespace {

// Chunks small enough that two workers end together, large enough that the counter costs nothing.
constexpr int64_t kChunk = 1 << 16;

struct SgdArgs {
  float gradient_scale, learning_rate, weight_decay, momentum, keep;  // keep: decoupled decay
  bool nesterov;
};

// torch.optim.SGD's arithmetic, with the decoupled decay before it.
void sgd(const SgdArgs& a, const float* gradient, float* weight, float* momentum, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] * a.gradient_scale + a.weight_decay * weight[i];
    const float v = a.momentum * momentum[i] + g;
    momentum[i] = v;
    weight[i] = weight[i] * a.keep - a.learning_rate * (a.nesterov ? g + a.momentum * v : v);
  }
}

bool all_finite(const float* values, int64_t count) {
  uint32_t highest = 0;  // NaN and infinity have the largest exponent
  for (int64_t i = 0; i < count; ++i) {
    highest = std::max(highest, std::bit_cast<uint32_t>(values[i]) & 0x7fffffffu);
  }
  return highest < 0x7f800000u;
}

void blend(float decay, bool pull, float* average, float* current, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    average[i] = decay * average[i] + (1.0f - decay) * current[i];
    if (pull) current[i] = average[i];
  }
}

}  // namespace

void CpuEngine::for_each_chunk(const std::function<void(size_t, int64_t, int64_t)>& job) {
  struct Chunk {
    size_t tensor;
    int64_t begin, end;
  };
  std::vector<Chunk> chunks;
  for (size_t t = 0; t < parameter_table_.size(); ++t) {
    for (int64_t begin = 0; begin < parameter_table_[t].count; begin += kChunk) {
      chunks.push_back({t, begin, std::min(begin + kChunk, parameter_table_[t].count)});
    }
  }
  std::atomic<size_t> next{0};
  workers_.run([&](int) {
    for (size_t i = next++; i < chunks.size(); i = next++) {
      job(chunks[i].tensor, chunks[i].begin, chunks[i].end);
    }
  });
}

float CpuEngine::total(TotalSlot slot) const {
  return reduced_.floats()[layout_.totals + static_cast<int>(slot)];
}

bool CpuEngine::gradients_finite() {
  const float* sums = reduced_.floats().data();
  std::atomic<bool> finite{true};
  for_each_chunk([&](size_t tensor, int64_t begin, int64_t end) {
    const int64_t offset = parameter_table_[tensor].offset + begin;
    if (!all_finite(sums + offset, end - begin)) finite = false;
  });
  const int64_t rest = layout_.floats - layout_.moments;
  return finite && all_finite(sums + layout_.moments, rest) &&
         total(TotalSlot::finite) == total(TotalSlot::shards);
}

void CpuEngine::update(const UpdateArgs& args) {
  require_tensors(options_, "update", args.tensors, parameter_table_.size());
  for (size_t t = 0; t < args.tensors.size(); ++t) {
    if (left_out_[t] && !args.tensors[t].frozen) {
      throw std::logic_error("update: '" + parameter_table_[t].name +
                             "' was expected to be frozen; it has no gradient");
    }
  }
  gradients_finite_ = gradients_finite();
  const float weight_sum = total(TotalSlot::weight);
  if (!gradients_finite_ || weight_sum <= 0) return;
  update_tensors(args, static_cast<float>(static_cast<double>(options_.nominal_rows) / weight_sum));
  update_statistics();
  loaded_ = Loaded::nothing;
}

void CpuEngine::update_tensors(const UpdateArgs& args, float gradient_scale) {
  const float* gradients = reduced_.floats().data();
  float* weights = parameters_.floats().data();
  float* momenta = momenta_.floats().data();
  for_each_chunk([&](size_t tensor, int64_t begin, int64_t end) {
    const TensorUpdate& u = args.tensors[tensor];
    if (u.frozen) return;
    const TensorInfo& info = parameter_table_[tensor];
    const SgdArgs sgd_args{gradient_scale,
                           u.learning_rate,
                           args.decoupled ? 0.0f : u.weight_decay,
                           args.momentum,
                           args.decoupled ? 1.0f - u.learning_rate * u.weight_decay : 1.0f,
                           args.nesterov};
    const int64_t at = info.offset + begin;
    sgd(sgd_args, gradients + at, weights + at, momenta + at, end - begin);
  });
}

// From the averages of (mean - running mean) and (variance + its square) over all shards: see
// write_moments(). PyTorch keeps the unbiased variance.
void CpuEngine::update_statistics() {
  const float* moments = reduced_.floats().data() + layout_.moments;
  float* statistics = statistics_.floats().data();
  const double shards = total(TotalSlot::shards);
  const std::vector<NodeShape> shapes = node_shapes(net_);
  for (size_t t = 0; t < statistics_table_.size(); t += 2) {
    const TensorInfo& means = statistics_table_[t];
    const TensorInfo& variances = statistics_table_[t + 1];
    const NodeShape& shape = shapes[means.node];
    const double count = shards * options_.micro_batch_rows * shape.height * shape.width;
    const double unbiased = count > 1 ? count / (count - 1) : 1.0;
    const double share = net_.nodes[means.node].momentum;
    for (int64_t c = 0; c < means.count; ++c) {
      const double distance = moments[means.offset + c] / shards;
      const double square = moments[variances.offset + c] / shards;
      const double variance = std::max(0.0, square - distance * distance) * unbiased;
      float& mean = statistics[means.offset + c];
      float& running = statistics[variances.offset + c];
      mean = static_cast<float>(mean + share * distance);
      running = static_cast<float>((1 - share) * running + share * variance);
    }
  }
}

StepTotals CpuEngine::totals() {
  require_training(options_, "totals");
  StepTotals totals;
  totals.loss_sum = total(TotalSlot::loss);
  totals.weight_sum = total(TotalSlot::weight);
  totals.top1 = total(TotalSlot::top1);
  totals.top5 = total(TotalSlot::top5);
  totals.finite = gradients_finite_ && total(TotalSlot::finite) == total(TotalSlot::shards);
  return totals;
}

void CpuEngine::blend_average(float decay, bool pull) {
  ensure_average();
  float* average = average_.floats().data();
  float* current = parameters_.floats().data();
  for_each_chunk([&](size_t tensor, int64_t begin, int64_t end) {
    const int64_t at = parameter_table_[tensor].offset + begin;
    blend(decay, pull, average + at, current + at, end - begin);
  });
  blend(decay, pull, average_statistics_.floats().data(), statistics_.floats().data(),
        total_count(statistics_table_));
  loaded_ = Loaded::nothing;
}

}  // namespace stoker
