// Batch norm, input and loss in plain loops over the kernels' arithmetic.
#include <algorithm>
#include <cstring>

#include "tests/support/host_ops.h"

namespace stoker::host {
namespace {

float* plane(float* planes, NormPlane which, int channels) {
  return planes + static_cast<int64_t>(which) * channels;
}

template <typename T>
void apply(const NormShape& s, const NormForward& a, const float* scale, const float* shift) {
  for (int64_t i = 0; i < s.pixels * s.channels; ++i) {
    const int64_t c = i % s.channels;
    float t = device::norm_value(load<T>(a.x, i), scale[c], shift[c]);
    if (a.residual != nullptr) t += load<T>(a.residual, i);
    store<T>(a.y, i, device::activate(s.activation, t));
  }
  if (a.mask == nullptr) return;
  const int width = norm_mask_width(s);
  for (int64_t byte = 0; byte < norm_mask_bytes(s); ++byte) {
    unsigned kept = 0;
    for (int i = 0; i < width; ++i) kept |= load<T>(a.y, byte * width + i) > 0 ? 1u << i : 0u;
    a.mask[byte] = static_cast<uint8_t>(kept);
  }
}

void poison(void* scratch, int channels) {
  std::memset(scratch, 0xff, static_cast<size_t>(channel_scratch_bytes(channels)));
}

template <typename T>
device::NormStatistics statistics_of(const NormShape& s, const NormForward& a, int c) {
  const auto count = static_cast<double>(s.pixels);
  if (a.sums != nullptr) {
    return device::norm_statistics(a.sums[c], a.sums[s.channels + c], 0, count);
  }
  const float origin = load<T>(a.x, c);
  double sum = 0, squares = 0;
  for (int64_t p = 0; p < s.pixels; ++p) {
    device::Moments m;
    m.add(load<T>(a.x, p * s.channels + c), origin);
    sum += m.sum;
    squares += m.squares;
  }
  return device::norm_statistics(sum, squares, origin, count);
}

void write_channel(const NormShape& s, const NormForward& a, int c,
                   const device::NormStatistics& of) {
  const device::NormChannel channel =
      device::norm_channel(of, s.eps, a.gamma[c], a.beta[c], a.running_mean[c]);
  plane(a.planes, NormPlane::mean, s.channels)[c] = channel.mean;
  plane(a.planes, NormPlane::inverse, s.channels)[c] = channel.inverse;
  plane(a.planes, NormPlane::scale, s.channels)[c] = channel.scale;
  plane(a.planes, NormPlane::shift, s.channels)[c] = channel.shift;
  a.moments[c] = channel.distance;
  a.moments[s.channels + c] = channel.moment;
}

template <typename T>
void apply_planes(const NormShape& s, const NormForward& a) {
  apply<T>(s, a, plane(a.planes, NormPlane::scale, s.channels),
           plane(a.planes, NormPlane::shift, s.channels));
}

}  // namespace

void norm_training(const NormShape& s, const NormForward& a) {
  poison(a.scratch, s.channels);
  with_type(s.type, [&]<typename T>(Tag<T>) {
    for (int c = 0; c < s.channels; ++c) write_channel(s, a, c, statistics_of<T>(s, a, c));
    apply_planes<T>(s, a);
  });
}

void norm_statistics(const NormShape& s, const NormForward& a, float* own) {
  poison(a.scratch, s.channels);
  with_type(s.type, [&]<typename T>(Tag<T>) {
    for (int c = 0; c < s.channels; ++c) {
      const device::NormStatistics of = statistics_of<T>(s, a, c);
      own[c] = static_cast<float>(of.mean);
      own[s.channels + c] = static_cast<float>(of.variance);
    }
  });
}

void norm_united(const NormShape& s, const NormForward& a, const NormReplicas& all) {
  for (int c = 0; c < s.channels; ++c) {
    write_channel(s, a, c, device::united_statistics(all, s.channels, c));
  }
  with_type(s.type, [&]<typename T>(Tag<T>) { apply_planes<T>(s, a); });
}

void norm_inference(const NormShape& s, const NormForward& a) {
  std::vector<float> scale(s.channels), shift(s.channels);
  for (int c = 0; c < s.channels; ++c) {
    scale[c] = a.gamma[c] / std::sqrt(a.running_variance[c] + s.eps);
    shift[c] = a.beta[c] - a.running_mean[c] * scale[c];
  }
  with_type(s.type, [&]<typename T>(Tag<T>) { apply<T>(s, a, scale.data(), shift.data()); });
}

namespace {

// Inputs of a backward pass: the gradient before the activation, and the planes.
template <typename T>
class Back {
 public:
  Back(const NormShape& s, const NormBackward& a) : s_(s), a_(a) {}

  float gradient(int64_t i) const {
    const int64_t c = i % s_.channels;
    const int width = norm_mask_width(s_);
    const float dy = load<T>(a_.dy, i) + (a_.dy2 != nullptr ? load<T>(a_.dy2, i) : 0.0f);
    const bool masked = a_.mask != nullptr;
    const bool kept = masked && (a_.mask[i / width] >> i % width & 1) != 0;
    return device::gradient_behind(s_.activation, masked, kept, dy, load<T>(a_.x, i),
                                   at(NormPlane::scale, c), at(NormPlane::shift, c));
  }

  // Also writes the residual's gradient.
  std::vector<device::NormSums> sums() const {
    std::vector<device::NormSums> sums(static_cast<size_t>(s_.channels), device::NormSums{0, 0});
    for (int64_t i = 0; i < s_.pixels * s_.channels; ++i) {
      const int64_t c = i % s_.channels;
      const float g = gradient(i);
      sums[c].sum += g;
      sums[c].product += static_cast<double>(g) * (load<T>(a_.x, i) - at(NormPlane::mean, c));
      if (a_.dresidual != nullptr) store<T>(a_.dresidual, i, g);
    }
    return sums;
  }

  device::NormSlope slope(int c, const device::NormSums& of, int replicas) const {
    return device::norm_slope(of, static_cast<double>(s_.pixels) * replicas, at(NormPlane::mean, c),
                              at(NormPlane::inverse, c), a_.gamma[c]);
  }

  void apply(const std::vector<device::NormSlope>& slopes) const {
    for (int64_t i = 0; i < s_.pixels * s_.channels; ++i) {
      const device::NormSlope& k = slopes[i % s_.channels];
      const float g = a_.dresidual != nullptr ? load<T>(a_.dresidual, i) : gradient(i);
      store<T>(a_.dx, i, k.a * g + k.b * load<T>(a_.x, i) + k.c);
    }
  }

 private:
  float at(NormPlane which, int64_t c) const {
    return a_.planes[static_cast<int64_t>(which) * s_.channels + c];
  }

  const NormShape& s_;
  const NormBackward& a_;
};

}  // namespace

void norm_backward(const NormShape& s, const NormBackward& a) {
  poison(a.scratch, s.channels);
  with_type(s.type, [&]<typename T>(Tag<T>) {
    const Back<T> back(s, a);
    const std::vector<device::NormSums> sums = back.sums();
    std::vector<device::NormSlope> slopes(s.channels);
    for (int c = 0; c < s.channels; ++c) {
      slopes[c] = back.slope(c, sums[c], 1);
      a.dgamma[c] = slopes[c].dgamma;
      a.dbeta[c] = slopes[c].dbeta;
    }
    if (a.dx != nullptr) back.apply(slopes);
  });
}

void norm_backward_sums(const NormShape& s, const NormBackward& a, float* own) {
  poison(a.scratch, s.channels);
  with_type(s.type, [&]<typename T>(Tag<T>) {
    const Back<T> back(s, a);
    const std::vector<device::NormSums> sums = back.sums();
    for (int c = 0; c < s.channels; ++c) {
      const device::NormSlope slope = back.slope(c, sums[c], 1);
      a.dgamma[c] = slope.dgamma;
      a.dbeta[c] = slope.dbeta;
      own[c] = static_cast<float>(sums[c].sum);
      own[s.channels + c] = static_cast<float>(sums[c].product);
    }
  });
}

void norm_backward_united(const NormShape& s, const NormBackward& a, const NormReplicas& all) {
  with_type(s.type, [&]<typename T>(Tag<T>) {
    const Back<T> back(s, a);
    std::vector<device::NormSlope> slopes(s.channels);
    for (int c = 0; c < s.channels; ++c) {
      slopes[c] = back.slope(c, device::united_sums(all, s.channels, c), all.count);
    }
    back.apply(slopes);
  });
}

void load_view(const ImageShape& s, const uint8_t* images, const View& view, void* out) {
  with_type(s.type, [&]<typename T>(Tag<T>) {
    int64_t at = 0;
    for (int row = 0; row < s.rows; ++row) {
      for (int y = 0; y < s.height; ++y) {
        const int line = device::seen_at(y, s.height, view.shift_y, false);
        for (int x = 0; x < s.width; ++x) {
          const int column = device::seen_at(x, s.width, view.shift_x, view.flip);
          const uint8_t* pixel =
              images + ((static_cast<int64_t>(row) * s.height + line) * s.width + column) * 3;
          for (int c = 0; c < s.channels; ++c) {
            const bool seen = c < s.seen;
            store<T>(out, at++, seen ? device::normalised(pixel[c], s.mean[c], s.stddev[c]) : 0.0f);
          }
        }
      }
    }
  });
}

namespace {

// Both return a row's result and write the slopes of its logits. The target is valid.
device::RowResult softmax_row(const LossShape& s, const device::RowTarget& target, const float* z,
                              float* slopes) {
  const float highest = *std::max_element(z, z + s.classes);
  float sum = 0, loss = 0;
  for (int k = 0; k < s.classes; ++k) sum += std::exp(z[k] - highest);
  const float log_sum = highest + std::log(sum);
  int rank = 0;
  for (int k = 0; k < s.classes; ++k) {
    const float wanted = device::wanted_probability(s, target, k);
    loss -= wanted * (z[k] - log_sum);
    slopes[k] = std::exp(z[k] - log_sum) - wanted;
    rank += device::comes_before(z[k], k, z[target.own], target.own);
  }
  return device::softmax_result(loss, rank);
}

device::RowResult binary_row(const LossShape& s, const device::RowTarget& target, const float* z,
                             float* slopes) {
  float loss = 0;
  int right = 0;
  for (int k = 0; k < s.classes; ++k) {
    const device::BinaryOutput output = device::binary_output(s, target, k, z[k]);
    loss += output.loss;
    right += output.right;
    slopes[k] = output.slope / static_cast<float>(s.classes);
  }
  return device::binary_result(s, loss, right);
}

}  // namespace

void loss(const LossShape& s, const float* logits, const LossRows& rows, void* dlogits,
          float* sample_metrics, float* totals) {
  std::vector<double> sums(kStepMetrics, 0.0);
  for (int row = 0; row < s.rows; ++row) {
    const float* z = logits + static_cast<int64_t>(row) * s.stride;
    const int64_t out = static_cast<int64_t>(row) * s.stride;
    const device::RowTarget target = device::row_target(s, rows, row);
    const bool valid = device::valid_target(s, target);
    const float weight = rows.weights[row];
    std::vector<float> slopes(s.stride, 0.0f);
    device::RowResult result;
    if (valid && weight != 0) {
      const auto row_of = s.kind == LossKind::binary ? binary_row : softmax_row;
      result = row_of(s, target, z, slopes.data());
      for (float& slope : slopes) slope *= weight * s.scale;
    }
    with_type(s.type, [&]<typename T>(Tag<T>) {
      for (int k = 0; k < s.stride; ++k) store<T>(dlogits, out + k, slopes[k]);
    });
    const device::SampleMetrics t = device::sample_metrics(weight, result, valid);
    std::copy_n(t.value, kStepMetrics, sample_metrics + static_cast<int64_t>(row) * kStepMetrics);
    for (int i = 0; i < kStepMetrics; ++i) sums[i] += t.value[i];
  }
  std::copy(sums.begin(), sums.end(), totals);
  device::finish_metrics(totals);
}

}  // namespace stoker::host
