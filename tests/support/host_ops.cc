#include "tests/support/host_ops.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace stoker {
namespace {

using host::load;
using host::store;
using host::with_type;

using Work = std::function<void()>;

class HostGraph final : public DeviceGraph {
 public:
  HostGraph(Stream& stream, std::vector<Work> work, HostOpsState& state)
      : stream_(stream),
        work_(std::make_shared<const std::vector<Work>>(std::move(work))),
        state_(state) {}
  void launch() override {
    if (state_.launches++ == state_.failing_launch) throw std::runtime_error("told to fail");
    stream_.call([work = work_] {
      for (const Work& each : *work) each();
    });
  }

 private:
  Stream& stream_;
  const std::shared_ptr<const std::vector<Work>> work_;
  HostOpsState& state_;
};

// Queues work, or records it for a graph.
class HostQueue {
 public:
  HostQueue(Stream& stream, HostOpsState& state) : stream_(stream), state_(state) {}
  void push(Work work) {
    if (capturing_) {
      captured_.push_back(std::move(work));
      return;
    }
    ++state_.queued;
    stream_.call(std::move(work));
  }
  void begin_capture() {
    ++state_.captures;
    capturing_ = true;
  }
  std::unique_ptr<DeviceGraph> end_capture() {
    capturing_ = false;
    if (state_.refuse_captures) {
      captured_.clear();
      throw std::runtime_error("captures are refused");
    }
    return std::make_unique<HostGraph>(stream_, std::exchange(captured_, {}), state_);
  }

 private:
  Stream& stream_;
  HostOpsState& state_;
  bool capturing_ = false;
  std::vector<Work> captured_;
};

class HostSummingConv final : public DeviceSummingConv {
 public:
  HostSummingConv(const ConvShape& shape, HostQueue& queue) : shape_(shape), queue_(queue) {}
  int64_t workspace_bytes() const override { return 1048; }
  std::string implementation() const override { return "conv with sums:host"; }
  void run(const void* x, const void* weights, void* y, float* sums, void* workspace) override {
    queue_.push([=, this] {
      std::memset(workspace, 0xff, static_cast<size_t>(workspace_bytes()));
      host::convolve(ConvPass::forward, shape_, x, weights, y);
      const int64_t pixels =
          static_cast<int64_t>(shape_.rows) * shape_.out_height * shape_.out_width;
      const int channels = shape_.out_channels;
      with_type(shape_.type, [&]<typename T>(host::Tag<T>) {
        for (int c = 0; c < channels; ++c) {
          device::Moments moments;
          for (int64_t p = 0; p < pixels; ++p) moments.add(load<T>(y, p * channels + c), 0);
          sums[c] = moments.sum;
          sums[channels + c] = moments.squares;
        }
      });
    });
  }

 private:
  const ConvShape shape_;
  HostQueue& queue_;
};

class HostConv final : public DeviceConv {
 public:
  HostConv(const ConvShape& shape, HostQueue& queue, bool sums)
      : shape_(shape), queue_(queue), sums_(sums) {}
  // Odd sizes, so that a workspace that overlaps something shows.
  int64_t workspace_bytes(ConvPass pass) const override {
    return pass == ConvPass::forward ? 0 : 1000 + 24 * static_cast<int64_t>(pass);
  }
  std::string implementation(ConvPass) const override { return "conv:host"; }
  void run(ConvPass pass, const void* a, const void* b, void* out, void* workspace) override {
    queue_.push([=, this, bytes = workspace_bytes(pass)] {
      if (bytes > 0) std::memset(workspace, 0xff, static_cast<size_t>(bytes));
      host::convolve(pass, shape_, a, b, out);
    });
  }
  DeviceSummingConv* summing() override { return sums_ ? &summing_ : nullptr; }

 private:
  const ConvShape shape_;
  HostQueue& queue_;
  const bool sums_;
  HostSummingConv summing_{shape_, queue_};
};

class HostOps final : public DeviceOps {
 public:
  HostOps(Stream& stream, HostOpsState* state)
      : state_(state != nullptr ? *state : own_state_), queue_(stream, state_) {}

  std::string name() const override { return "host loops"; }
  int64_t free_bytes() const override { return state_.free_bytes; }
  void begin_capture() override { queue_.begin_capture(); }
  std::unique_ptr<DeviceGraph> end_capture() override { return queue_.end_capture(); }
  void push_range(const char*) override {}
  void pop_range() override {}

  void zero(void* data, int64_t bytes) override {
    queue_.push([=] { std::memset(data, 0, static_cast<size_t>(bytes)); });
  }
  void copy(void* target, const void* source, int64_t bytes) override {
    queue_.push([=] { std::memcpy(target, source, static_cast<size_t>(bytes)); });
  }
  void load_view(const ImageShape& s, const uint8_t* images, const View& view, void* out) override {
    queue_.push([=] { host::load_view(s, images, view, out); });
  }

  std::unique_ptr<DeviceConv> make_conv(const ConvShape& s, bool) override {
    return std::make_unique<HostConv>(s, queue_, state_.summing_convolutions);
  }
  void add_bias(int64_t pixels, int channels, Precision type, const float* bias, Activation kind,
                void* x) override {
    queue_.push([=] {
      with_type(type, [&]<typename T>(host::Tag<T>) {
        for (int64_t i = 0; i < pixels * channels; ++i) {
          store<T>(x, i, device::activate(kind, load<T>(x, i) + bias[i % channels]));
        }
      });
    });
  }
  void sum_pixels(int64_t pixels, int channels, Precision type, const void* dy, float* sums,
                  void* scratch) override {
    queue_.push([=] {
      std::memset(scratch, 0xff, static_cast<size_t>(channel_scratch_bytes(channels)));
      std::vector<double> sum(channels, 0.0);
      with_type(type, [&]<typename T>(host::Tag<T>) {
        for (int64_t i = 0; i < pixels * channels; ++i) sum[i % channels] += load<T>(dy, i);
      });
      std::copy(sum.begin(), sum.end(), sums);
    });
  }

  void norm_training(const NormShape& s, const NormForward& a) override {
    queue_.push([=] { host::norm_training(s, a); });
  }
  void norm_inference(const NormShape& s, const NormForward& a) override {
    queue_.push([=] { host::norm_inference(s, a); });
  }
  void norm_backward(const NormShape& s, const NormBackward& a) override {
    queue_.push([=] { host::norm_backward(s, a); });
  }
  void norm_statistics(const NormShape& s, const NormForward& a, float* own) override {
    queue_.push([=] { host::norm_statistics(s, a, own); });
  }
  void norm_united(const NormShape& s, const NormForward& a, const NormReplicas& all) override {
    queue_.push([=] { host::norm_united(s, a, all); });
  }
  void norm_backward_sums(const NormShape& s, const NormBackward& a, float* own) override {
    queue_.push([=] { host::norm_backward_sums(s, a, own); });
  }
  void norm_backward_united(const NormShape& s, const NormBackward& a,
                            const NormReplicas& all) override {
    queue_.push([=] { host::norm_backward_united(s, a, all); });
  }

  void activate(Activation kind, int64_t count, Precision type, const void* x, void* y) override {
    queue_.push([=] {
      with_type(type, [&]<typename T>(host::Tag<T>) {
        for (int64_t i = 0; i < count; ++i) store<T>(y, i, device::activate(kind, load<T>(x, i)));
      });
    });
  }
  void activate_backward(Activation kind, int64_t count, Precision type, const void* seen,
                         const void* dy, void* dx) override {
    queue_.push([=] {
      with_type(type, [&]<typename T>(host::Tag<T>) {
        for (int64_t i = 0; i < count; ++i) {
          store<T>(dx, i, load<T>(dy, i) * device::activation_slope(kind, load<T>(seen, i)));
        }
      });
    });
  }
  void add(int64_t count, Precision type, Activation relu_or_none, const void* a, const void* b,
           void* out) override {
    queue_.push([=] {
      with_type(type, [&]<typename T>(host::Tag<T>) {
        for (int64_t i = 0; i < count; ++i) {
          store<T>(out, i, device::activate(relu_or_none, load<T>(a, i) + load<T>(b, i)));
        }
      });
    });
  }

  void max_pool(const PoolShape& s, const void* x, void* y, uint8_t* argmax) override {
    queue_.push([=] { host::max_pool(s, x, y, argmax); });
  }
  void max_pool_backward(const PoolShape& s, const void* dy, const uint8_t* argmax,
                         void* dx) override {
    queue_.push([=] { host::max_pool_backward(s, dy, argmax, dx); });
  }
  void average_pool(const PoolShape& s, const void* x, void* y) override {
    queue_.push([=] { host::average_pool(s, x, y); });
  }
  void average_pool_backward(const PoolShape& s, const void* dy, void* dx) override {
    queue_.push([=] { host::average_pool_backward(s, dy, dx); });
  }
  void copy_channels(const ChannelsShape& s, const void* x, void* y) override {
    queue_.push([=] { host::copy_channels(s, x, y); });
  }
  void pad_channels(const PadShape& s, const void* x, void* y) override {
    queue_.push([=] { host::pad_channels(s, x, y); });
  }
  void pad_channels_backward(const PadShape& s, const void* dy, void* dx) override {
    queue_.push([=] { host::pad_channels_backward(s, dy, dx); });
  }

  void dropout(const DropoutShape& s, const int64_t* position, const void* values,
               void* out) override {
    queue_.push([=] { host::dropout(s, *position, values, out); });
  }
  void set(int64_t value, int64_t* target) override {
    queue_.push([=] { *target = value; });
  }

  void linear(const LinearShape& s, const void* x, const void* weight, const float* bias,
              float* logits, void*) override {
    queue_.push([=] { host::linear(s, x, weight, bias, logits); });
  }
  void linear_backward(const LinearShape& s, const void* x, const void* weight, const void* dlogits,
                       float* dweight, float* dbias, void* dx, void*) override {
    queue_.push([=] { host::linear_backward(s, x, weight, dlogits, dweight, dbias, dx); });
  }
  void loss(const LossShape& s, const float* logits, const LossRows& rows, void* dlogits,
            float* sample_metrics, float* totals) override {
    queue_.push([=] { host::loss(s, logits, rows, dlogits, sample_metrics, totals); });
  }

  void cast_to_fp32(const TensorChunk* chunks, int count, const void* bf16, float* out) override {
    queue_.push([=] {
      for (int c = 0; c < count; ++c) {
        for (int64_t i = chunks[c].offset; i < chunks[c].offset + chunks[c].count; ++i) {
          out[i] = load<device::Bf16>(bf16, i);
        }
      }
    });
  }
  void cast_to_bf16(int64_t count, const float* values, void* bf16) override {
    queue_.push([=] {
      for (int64_t i = 0; i < count; ++i) store<device::Bf16>(bf16, i, values[i]);
    });
  }
  void accumulate(int64_t count, const float* from, float* into) override {
    queue_.push([=] {
      for (int64_t i = 0; i < count; ++i) into[i] += from[i];
    });
  }
  void decide(const UpdateShape& s, const float* reduced, FiniteCheck* check,
              void* scratch) override {
    queue_.push([=] {
      std::memset(scratch, 0xff, static_cast<size_t>(kDecideScratchBytes));
      const bool finite = std::all_of(reduced, reduced + s.numbers, device::is_finite);
      device::decide(s.nominal_rows, finite, reduced + s.metrics, check);
    });
  }
  void scale_tensors(const UpdateShape& s, const UpdateRates* rates, const FiniteCheck* check,
                     const float* reduced, const float* weights, TensorSquares*,
                     TensorScale* scales) override {
    queue_.push([=] {
      if (check->apply) host::scale_tensors(s, *rates, *check, reduced, weights, scales);
    });
  }
  void update(const UpdateShape& s, const UpdateRates* rates, const FiniteCheck* check,
              const TensorScale* scales, const float* reduced,
              const UpdatedStates& states) override {
    queue_.push([=] {
      if (check->apply) host::update(s, *rates, *check, scales, reduced, states);
    });
  }
  void move_statistics(const UpdateShape& s, const FiniteCheck* check, const float* reduced,
                       float* statistics) override {
    queue_.push([=] {
      if (!check->apply) return;
      const double micro_batches = reduced[s.metrics + static_cast<int>(StepMetric::micro_batches)];
      for (int c = 0; c < s.channel_count; ++c) {
        device::move_statistics(s.channels[c], reduced + s.moments, micro_batches, statistics);
      }
    });
  }
  void blend(int64_t count, float decay, bool pull, float* average, float* current) override {
    queue_.push([=] {
      for (int64_t i = 0; i < count; ++i) device::blend(decay, pull, average + i, current + i);
    });
  }

 private:
  HostOpsState own_state_;
  HostOpsState& state_;
  HostQueue queue_;
};

}  // namespace

DeviceOpsFactory host_ops_factory(HostOpsState* state) {
  return [state](Device&, Stream& stream) { return std::make_unique<HostOps>(stream, state); };
}

}  // namespace stoker
