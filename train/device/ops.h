// The operations of a device engine, on raw device pointers, queued in order on one stream; nothing
// here waits for the device. There are two implementations with the same arithmetic (arithmetic.h):
// the CUDA plugin's (train/cuda/ops.h) and plain loops for tests (tests/support/host_ops.h). Owner:
// DeviceEngine. Threads: one at a time. Buffers are aligned to 256 bytes unless they are labels,
// weights of rows, or metrics. Results do not depend on timing, because sums have a fixed order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/device/types.h"

namespace stoker {

enum class ConvPass : uint8_t { forward, backward_data, backward_weights };

class DeviceSummingConv {
 public:
  virtual ~DeviceSummingConv() = default;
  virtual int64_t workspace_bytes() const = 0;
  virtual std::string implementation() const = 0;
  // sums: (2, out_channels) fp32, of y and of its square over all pixels.
  virtual void run(const void* x, const void* weights, void* y, float* sums, void* workspace) = 0;
};

// One convolution; its plans are made at construction.
class DeviceConv {
 public:
  virtual ~DeviceConv() = default;
  virtual int64_t workspace_bytes(ConvPass pass) const = 0;
  virtual std::string implementation(ConvPass pass) const = 0;
  // forward (x, weights) -> y; backward_data (dy, weights) -> dx; backward_weights (x, dy) ->
  // dweights.
  virtual void run(ConvPass pass, const void* a, const void* b, void* out, void* workspace) = 0;

  // Returns a forward pass that also sums y, which saves the following batch norm a pass over y.
  // Null if there is none or if it is not faster. Called when a training plan is built; the
  // convolution owns the result.
  virtual DeviceSummingConv* summing() { return nullptr; }
};

// Milliseconds of a convolution fused with a neighbouring operation, and of both run separately;
// both are 0 and `plan` is empty if the libraries cannot fuse them.
struct FusionTime {
  ConvShape shape;
  std::string fusion, plan;
  float apart_ms = 0, fused_ms = 0;
};

// Captured work, replayed with the same pointers.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  virtual void launch() = 0;
};

// Bytes of the scratch and workspaces below.
inline int64_t channel_scratch_bytes(int channels) {  // sum_pixels, norm_*
  constexpr int64_t kDouble = sizeof(double);
  constexpr int64_t kPairs = 2 * (kMaxSplits * kFloat + kMaxSplits / kGroupSplits * kDouble);
  constexpr int64_t kSlopes = 3 * kFloat;
  return channels * (kPairs + kSlopes);
}
constexpr int64_t kLinearWorkspaceBytes = int64_t{32} << 20;
constexpr int64_t kDecideScratchBytes = int64_t{1} << 14;

class DeviceOps {
 public:
  virtual ~DeviceOps() = default;
  virtual std::string name() const = 0;  // of the libraries: "cuDNN 9.19, cuBLASLt 13.1"
  // Returns the device memory that is free now; other programs may take it.
  virtual int64_t free_bytes() const = 0;

  // Between these two calls, queued work is recorded and not run.
  virtual void begin_capture() = 0;
  virtual std::unique_ptr<DeviceGraph> end_capture() = 0;
  // Names the following work for profilers; nests. `name` must outlive the ops.
  virtual void push_range(const char* name) = 0;
  virtual void pop_range() = 0;

  virtual void zero(void* data, int64_t bytes) = 0;
  virtual void copy(void* target, const void* source, int64_t bytes) = 0;  // on the device

  // Converts pixels to the first activation.
  virtual void load_view(const ImageShape& s, const uint8_t* images, const View& view,
                         void* out) = 0;

  virtual std::unique_ptr<DeviceConv> make_conv(const ConvShape& s, bool backward) = 0;
  // Compute x (pixels, channels) = kind(x + bias), and the gradient of the bias.
  virtual void add_bias(int64_t pixels, int channels, Precision type, const float* bias,
                        Activation kind, void* x) = 0;
  virtual void sum_pixels(int64_t pixels, int channels, Precision type, const void* dy, float* sums,
                          void* scratch) = 0;

  virtual void norm_training(const NormShape& s, const NormForward& a) = 0;
  virtual void norm_inference(const NormShape& s, const NormForward& a) = 0;
  virtual void norm_backward(const NormShape& s, const NormBackward& a) = 0;
  // The same in two halves, for replicas that synchronise their batch norms in between. The first
  // writes this replica's `own` numbers, (2, channels), and the second takes those of all replicas,
  // which have as many rows each. norm_statistics() needs x, scratch and sums alone.
  virtual void norm_statistics(const NormShape& s, const NormForward& a, float* own) = 0;
  virtual void norm_united(const NormShape& s, const NormForward& a, const NormReplicas& all) = 0;
  // Also writes dgamma and dbeta of this replica's rows, and dresidual.
  virtual void norm_backward_sums(const NormShape& s, const NormBackward& a, float* own) = 0;
  // Writes dx. dresidual and scratch are as the first half has left them.
  virtual void norm_backward_united(const NormShape& s, const NormBackward& a,
                                    const NormReplicas& all) = 0;

  // y may be x, dx may be dy. `seen` is y if reads_output(kind), else x.
  virtual void activate(Activation kind, int64_t count, Precision type, const void* x, void* y) = 0;
  virtual void activate_backward(Activation kind, int64_t count, Precision type, const void* seen,
                                 const void* dy, void* dx) = 0;
  virtual void add(int64_t count, Precision type, Activation relu_or_none, const void* a,
                   const void* b, void* out) = 0;  // out may be a or b

  // argmax: (rows, H, W, C) u8 of the output, the index of the maximum in its window.
  virtual void max_pool(const PoolShape& s, const void* x, void* y, uint8_t* argmax) = 0;
  virtual void max_pool_backward(const PoolShape& s, const void* dy, const uint8_t* argmax,
                                 void* dx) = 0;
  // The padding's zeros count.
  virtual void average_pool(const PoolShape& s, const void* x, void* y) = 0;
  virtual void average_pool_backward(const PoolShape& s, const void* dy, void* dx) = 0;
  virtual void copy_channels(const ChannelsShape& s, const void* x, void* y) = 0;
  virtual void pad_channels(const PadShape& s, const void* x, void* y) = 0;
  virtual void pad_channels_backward(const PadShape& s, const void* dy, void* dx) = 0;

  // Multiplies values, or their gradients, by the factors of their places. `position`, in device
  // memory: the place of the first row in the run. `out` may be `values`.
  virtual void dropout(const DropoutShape& s, const int64_t* position, const void* values,
                       void* out) = 0;
  // Writes *target = value, in device memory; `value` is taken in the call.
  virtual void set(int64_t value, int64_t* target) = 0;

  virtual void linear(const LinearShape& s, const void* x, const void* weight, const float* bias,
                      float* logits, void* workspace) = 0;  // bias may be null
  virtual void linear_backward(const LinearShape& s, const void* x, const void* weight,
                               const void* dlogits, float* dweight, float* dbias, void* dx,
                               void* workspace) = 0;  // dbias, dx may be null

  // Rows of weight 0 contribute nothing, even if they have a NaN. sample_metrics: (rows,
  // kStepMetrics) scratch.
  virtual void loss(const LossShape& s, const float* logits, const LossRows& rows, void* dlogits,
                    float* sample_metrics, float* metrics) = 0;

  // Flat buffers with the same layout; `chunks` is in device memory.
  virtual void cast_to_fp32(const TensorChunk* chunks, int count, const void* bf16, float* out) = 0;
  virtual void cast_to_bf16(int64_t count, const float* values, void* bf16) = 0;
  virtual void accumulate(int64_t count, const float* from, float* into) = 0;
  virtual void decide(const UpdateShape& s, const float* reduced, FiniteCheck* check,
                      void* scratch) = 0;
  // Computes the scale of each tensor of an update, for clipping and LARS: scales (tensor_count).
  // squares: (chunk_count + tensor_count) scratch. Nothing happens if the check is not to apply.
  virtual void scale_tensors(const UpdateShape& s, const UpdateRates* rates,
                             const FiniteCheck* check, const float* reduced, const float* weights,
                             TensorSquares* squares, TensorScale* scales) = 0;
  // scales: of scale_tensors(), or null: the check's for all tensors. Adam where there are second
  // moments, else SGD, or LARS by its scales.
  virtual void update(const UpdateShape& s, const UpdateRates* rates, const FiniteCheck* check,
                      const TensorScale* scales, const float* reduced,
                      const UpdatedStates& states) = 0;
  virtual void move_statistics(const UpdateShape& s, const FiniteCheck* check, const float* reduced,
                               float* statistics) = 0;
  virtual void blend(int64_t count, float decay, bool pull, float* average, float* current) = 0;
};

}  // namespace stoker
