// The device engine's operations on the host: the CUDA kernels' arithmetic in plain loops, queued
// on a host stream. A captured graph replays closures with the arguments of the capture. Owner: the
// engine under test. Threads: as DeviceOps.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "train/device/arithmetic_step.h"
#include "train/device/engine.h"
#include "train/device/ops.h"

namespace stoker {

struct HostOpsState {  // for tests to read and set
  int64_t free_bytes = int64_t{1} << 40;
  int launches = 0;  // graph launches
  int captures = 0;
  bool refuse_captures = false;
  int failing_launch = -1;            // this launch (from 0) throws std::runtime_error
  bool summing_convolutions = false;  // convolutions can also sum their output
  int queued = 0;                     // operations outside of graphs
};

// Factories for DeviceEngine; `state` outlives the engine.
DeviceOpsFactory host_ops_factory(HostOpsState* state = nullptr);

namespace host {

template <typename Number>
struct Tag {
  using type = Number;
};

// Calls visit(Tag<float>) or visit(Tag<device::Bf16>).
template <typename Visit>
void with_type(Precision type, Visit visit) {
  if (type == Precision::bf16) {
    visit(Tag<device::Bf16>{});
  } else {
    visit(Tag<float>{});
  }
}

template <typename Number>
float load(const void* data, int64_t at) {
  return device::to_float(static_cast<const Number*>(data)[at]);
}
template <typename Number>
void store(void* data, int64_t at, float value) {
  static_cast<Number*>(data)[at] = device::number<Number>(value);
}

std::vector<float> as_floats(const void* data, int64_t count, Precision type);
void store_floats(const std::vector<float>& values, Precision type, void* out);

// The loops themselves; each runs on the stream's thread.
void convolve(ConvPass pass, const ConvShape& s, const void* a, const void* b, void* out);
void norm_training(const NormShape& s, const NormForward& a);
void norm_inference(const NormShape& s, const NormForward& a);
void norm_backward(const NormShape& s, const NormBackward& a);
void norm_statistics(const NormShape& s, const NormForward& a, float* own);
void norm_united(const NormShape& s, const NormForward& a, const NormReplicas& all);
void norm_backward_sums(const NormShape& s, const NormBackward& a, float* own);
void norm_backward_united(const NormShape& s, const NormBackward& a, const NormReplicas& all);
void max_pool(const PoolShape& s, const void* x, void* y, uint8_t* argmax);
void max_pool_backward(const PoolShape& s, const void* dy, const uint8_t* argmax, void* dx);
void average_pool(const PoolShape& s, const void* x, void* y);
void average_pool_backward(const PoolShape& s, const void* dy, void* dx);
void copy_channels(const ChannelsShape& s, const void* x, void* y);
void pad_channels(const PadShape& s, const void* x, void* y);
void pad_channels_backward(const PadShape& s, const void* dy, void* dx);
void load_view(const ImageShape& s, const uint8_t* images, const View& view, void* out);
void dropout(const DropoutShape& s, int64_t position, const void* values, void* out);
void linear(const LinearShape& s, const void* x, const void* weight, const float* bias,
            float* logits);
void linear_backward(const LinearShape& s, const void* x, const void* weight, const void* dlogits,
                     float* dweight, float* dbias, void* dx);
void loss(const LossShape& s, const float* logits, const LossRows& rows, void* dlogits,
          float* sample_metrics, float* totals);
void scale_tensors(const UpdateShape& s, const UpdateRates& rates, const FiniteCheck& check,
                   const float* reduced, const float* weights, TensorScale* scales);
void update(const UpdateShape& s, const UpdateRates& rates, const FiniteCheck& check,
            const TensorScale* scales, const float* reduced, const UpdatedStates& states);

}  // namespace host
}  // namespace stoker
