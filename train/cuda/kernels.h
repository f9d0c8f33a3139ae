// The CUDA kernels of train/device/ops.h as plain functions: each queues its kernels on `stream`
// and throws std::runtime_error if they cannot be launched. Implemented in kernels_*.cu with the
// arithmetic of train/device/arithmetic.h. Sums have a fixed order: counters find the block that
// comes last, which adds up the other blocks' results in order. Threads: any; the stream's GPU is
// current.
#pragma once

#include <cuda_runtime_api.h>

#include "train/cuda/fold_shape.h"
#include "train/device/ops.h"

namespace stoker::cuda {

void check(cudaError_t error, const char* what);

// The number of counters for kernels that sum over blocks. The counters are 0 at first and between
// kernels. Kernels that share them must run one after the other.
constexpr int kMaxColumns = 256;
constexpr int kTickets = kMaxColumns * (1 + kMaxSplits / kGroupSplits);

void load_view(cudaStream_t stream, const ImageShape& s, const uint8_t* images, const View& view,
               void* out);

void fold_pixels(cudaStream_t stream, const FoldedShape& s, const void* x, void* folded);
void fold_weights(cudaStream_t stream, const FoldedShape& s, const void* weights, void* folded);
void unfold_weights(cudaStream_t stream, const FoldedShape& s, const void* folded, void* weights);

void add_bias(cudaStream_t stream, int64_t pixels, int channels, Precision type, const float* bias,
              Activation kind, void* x);
void sum_pixels(cudaStream_t stream, int64_t pixels, int channels, Precision type, const void* dy,
                float* sums, void* scratch, unsigned* tickets);
void norm_training(cudaStream_t stream, const NormShape& s, const NormForward& a,
                   unsigned* tickets);
void norm_inference(cudaStream_t stream, const NormShape& s, const NormForward& a);
void norm_backward(cudaStream_t stream, const NormShape& s, const NormBackward& a,
                   unsigned* tickets);
void norm_statistics(cudaStream_t stream, const NormShape& s, const NormForward& a, float* own,
                     unsigned* tickets);
void norm_united(cudaStream_t stream, const NormShape& s, const NormForward& a,
                 const NormReplicas& all);
void norm_backward_sums(cudaStream_t stream, const NormShape& s, const NormBackward& a, float* own,
                        unsigned* tickets);
void norm_backward_united(cudaStream_t stream, const NormShape& s, const NormBackward& a,
                          const NormReplicas& all);

void activate(cudaStream_t stream, Activation kind, int64_t count, Precision type, const void* x,
              void* y);
void activate_backward(cudaStream_t stream, Activation kind, int64_t count, Precision type,
                       const void* seen, const void* dy, void* dx);
void add(cudaStream_t stream, int64_t count, Precision type, Activation kind, const void* a,
         const void* b, void* out);

void max_pool(cudaStream_t stream, const PoolShape& s, const void* x, void* y, uint8_t* argmax);
void max_pool_backward(cudaStream_t stream, const PoolShape& s, const void* dy,
                       const uint8_t* argmax, void* dx);
void average_pool(cudaStream_t stream, const PoolShape& s, const void* x, void* y);
void average_pool_backward(cudaStream_t stream, const PoolShape& s, const void* dy, void* dx);
void copy_channels(cudaStream_t stream, const ChannelsShape& s, const void* x, void* y);
void pad_channels(cudaStream_t stream, const PadShape& s, const void* x, void* y);
void pad_channels_backward(cudaStream_t stream, const PadShape& s, const void* dy, void* dx);

void dropout(cudaStream_t stream, const DropoutShape& s, const int64_t* position,
             const void* values, void* out);
void set(cudaStream_t stream, int64_t value, int64_t* target);

// Compute logits += scale * bias, and the bias's gradient from that of the logits.
void add_logit_bias(cudaStream_t stream, const LinearShape& s, const float* bias, float* logits);
void sum_logit_gradients(cudaStream_t stream, const LinearShape& s, const void* dlogits,
                         float* dbias);
void loss(cudaStream_t stream, const LossShape& s, const float* logits, const LossRows& rows,
          void* dlogits, float* sample_metrics, float* metrics);

void cast_to_fp32(cudaStream_t stream, const TensorChunk* chunks, int count, const void* bf16,
                  float* out);
void cast_to_bf16(cudaStream_t stream, int64_t count, const float* values, void* bf16);
void accumulate(cudaStream_t stream, int64_t count, const float* from, float* into);
void decide(cudaStream_t stream, const UpdateShape& s, const float* reduced, FiniteCheck* check,
            void* scratch);
void scale_tensors(cudaStream_t stream, const UpdateShape& s, const UpdateRates* rates,
                   const FiniteCheck* check, const float* reduced, const float* weights,
                   TensorSquares* squares, TensorScale* scales);
void update(cudaStream_t stream, const UpdateShape& s, const UpdateRates* rates,
            const FiniteCheck* check, const TensorScale* scales, const float* reduced,
            const UpdatedStates& states);
void move_statistics(cudaStream_t stream, const UpdateShape& s, const FiniteCheck* check,
                     const float* reduced, float* statistics);
void blend(cudaStream_t stream, int64_t count, float decay, bool pull, float* average,
           float* current);

}  // namespace stoker::cuda
