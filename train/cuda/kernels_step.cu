// Loss, optimiser and statistics.
#include "train/cuda/vector.cuh"

namespace stoker::cuda {
namespace {

constexpr int kLossThreads = 128;
constexpr int kFlags = static_cast<int>(kDecideScratchBytes / sizeof(int));

// Writes what the first thread of a row's block knows.
__device__ __forceinline__ void store_metrics(int row, float weight,
                                              const device::RowResult& result, bool valid,
                                              float* sample_metrics) {
  const device::SampleMetrics metrics = device::sample_metrics(weight, result, valid);
  for (int i = 0; i < kStepMetrics; ++i) {
    sample_metrics[static_cast<int64_t>(row) * kStepMetrics + i] = metrics.value[i];
  }
}

// A block handles one row: its loss, its gradient and its metrics.
template <typename Number>
__global__ void __launch_bounds__(kLossThreads)
    softmax_kernel(LossShape s, const float* logits, LossRows rows, Number* dlogits,
                   float* sample_metrics) {
  __shared__ float shared[32];
  const int row = blockIdx.x;
  const float* z = logits + static_cast<int64_t>(row) * s.stride;
  Number* out = dlogits + static_cast<int64_t>(row) * s.stride;
  const device::RowTarget target = device::row_target(s, rows, row);
  const bool valid = device::valid_target(s, target);
  const float weight = rows.weights[row];

  float highest = -INFINITY;
  for (int k = threadIdx.x; k < s.classes; k += kLossThreads) highest = fmaxf(highest, z[k]);
  highest = block_reduce(highest, Largest{}, shared);
  float sum = 0;
  for (int k = threadIdx.x; k < s.classes; k += kLossThreads) sum += expf(z[k] - highest);
  const float log_sum = highest + logf(block_reduce(sum, Sum{}, shared));

  const bool counts = valid && weight != 0;
  float loss = 0, rank = 0;
  for (int k = threadIdx.x; k < s.stride; k += kLossThreads) {
    float gradient = 0;
    if (k < s.classes && counts) {
      const float wanted = device::wanted_probability(s, target, k);
      loss -= wanted * (z[k] - log_sum);
      gradient = weight * s.scale * (expf(z[k] - log_sum) - wanted);
      rank += static_cast<float>(device::comes_before(z[k], k, z[target.own], target.own));
    }
    const float one[1] = {gradient};
    store(out + k, one);
  }
  loss = block_reduce(loss, Sum{}, shared);
  rank = block_reduce(rank, Sum{}, shared);
  if (threadIdx.x != 0) return;
  store_metrics(row, weight, device::softmax_result(loss, static_cast<int>(rank)), valid,
                sample_metrics);
}

template <typename Number>
__global__ void __launch_bounds__(kLossThreads)
    binary_kernel(LossShape s, const float* logits, LossRows rows, Number* dlogits,
                  float* sample_metrics) {
  __shared__ float shared[32];
  const int row = blockIdx.x;
  const float* z = logits + static_cast<int64_t>(row) * s.stride;
  Number* out = dlogits + static_cast<int64_t>(row) * s.stride;
  const device::RowTarget target = device::row_target(s, rows, row);
  const bool valid = device::valid_target(s, target);
  const float weight = rows.weights[row];
  const float factor = weight * s.scale / static_cast<float>(s.classes);
  float loss = 0, right = 0;
  for (int k = threadIdx.x; k < s.stride; k += kLossThreads) {
    float gradient = 0;
    if (k < s.classes && valid && weight != 0) {
      const device::BinaryOutput output = device::binary_output(s, target, k, z[k]);
      loss += output.loss;
      right += static_cast<float>(output.right);
      gradient = factor * output.slope;
    }
    const float one[1] = {gradient};
    store(out + k, one);
  }
  loss = block_reduce(loss, Sum{}, shared);
  right = block_reduce(right, Sum{}, shared);
  if (threadIdx.x != 0) return;
  store_metrics(row, weight, device::binary_result(s, loss, static_cast<int>(right)), valid,
                sample_metrics);
}

// One block adds up all rows.
__global__ void __launch_bounds__(kThreads)
    metrics_kernel(int rows, const float* sample_metrics, float* metrics) {
  __shared__ float shared[32];
  for (int i = 0; i < kStepMetrics; ++i) {
    float sum = 0;
    for (int row = threadIdx.x; row < rows; row += kThreads) {
      sum += sample_metrics[static_cast<int64_t>(row) * kStepMetrics + i];
    }
    sum = block_reduce(sum, Sum{}, shared);
    if (threadIdx.x == 0) metrics[i] = sum;
  }
  if (threadIdx.x == 0) device::finish_metrics(metrics);
}

__global__ void __launch_bounds__(kThreads)
    logit_bias_kernel(int64_t count, LinearShape s, const float* bias, float* logits) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int64_t k = i % s.classes;
  logits[i / s.classes * s.stride + k] += s.scale * bias[k];
}

// Blocks of (32 classes, 8 lanes of rows).
template <typename Number>
__global__ void __launch_bounds__(kThreads)
    logit_gradient_kernel(LinearShape s, const Number* dlogits, float* dbias) {
  __shared__ float shared[8][32];
  const int k = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  if (k < s.classes) {
    for (int row = threadIdx.y; row < s.rows; row += 8) {
      sum += device::to_float(dlogits[static_cast<int64_t>(row) * s.stride + k]);
    }
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || k >= s.classes) return;
  for (int lane = 1; lane < 8; ++lane) sum += shared[lane][threadIdx.x];
  dbias[k] = s.scale * sum;
}

// Tensors begin aligned and are padded with zeros, so they are processed four values at a time,
// past the end of a tensor if necessary.
__device__ __forceinline__ int64_t fours(int count) { return (count + 3) / 4; }

__global__ void __launch_bounds__(kThreads)
    to_fp32_kernel(const TensorChunk* chunks, const Bf16* bf16, float* out) {
  const TensorChunk chunk = chunks[blockIdx.x];
  for (int64_t i = threadIdx.x; i < fours(chunk.count); i += kThreads) {
    float values[4];
    load(bf16 + chunk.offset + 4 * i, values);
    store(out + chunk.offset + 4 * i, values);
  }
}

__global__ void __launch_bounds__(kThreads)
    to_bf16_kernel(int64_t groups, const float* values, Bf16* bf16) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < groups;
       i += step) {
    float four[4];
    load(values + 4 * i, four);
    store(bf16 + 4 * i, four);
  }
}

__global__ void __launch_bounds__(kThreads)
    accumulate_kernel(int64_t count, const float* from, float* into) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += step) {
    into[i] += from[i];
  }
}

__global__ void __launch_bounds__(kThreads)
    blend_kernel(int64_t count, float decay, bool pull, float* average, float* current) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += step) {
    device::blend(decay, pull, average + i, current + i);
  }
}

__global__ void __launch_bounds__(kThreads)
    finite_kernel(int64_t groups, const float* values, int* flags) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  int finite = 1;
#pragma unroll 4
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < groups;
       i += step) {
    float four[4];
    load(values + 4 * i, four);
    for (const float value : four) finite &= device::is_finite(value) ? 1 : 0;
  }
  const int all = __syncthreads_and(finite);
  if (threadIdx.x == 0) flags[blockIdx.x] = all;
}

__global__ void __launch_bounds__(kThreads)
    decide_kernel(UpdateShape s, int blocks, const int* flags, const float* reduced,
                  FiniteCheck* check) {
  int finite = 1;
  for (int i = threadIdx.x; i < blocks; i += kThreads) finite &= flags[i];
  const int all = __syncthreads_and(finite);
  if (threadIdx.x == 0) device::decide(s.nominal_rows, all != 0, reduced + s.metrics, check);
}

__device__ __forceinline__ TensorRate rate_of(const UpdateRates* rates, int tensor) {
  return reinterpret_cast<const TensorRate*>(rates + 1)[tensor];
}

// A block sums the squares of one chunk. The gradient buffer has zeros behind a tensor, and so have
// the weights.
__global__ void __launch_bounds__(kThreads)
    chunk_squares_kernel(UpdateShape s, const UpdateRates* rates, const FiniteCheck* check,
                         const float* reduced, const float* weights, TensorSquares* squares) {
  __shared__ double shared[32];
  const TensorChunk chunk = s.chunks[blockIdx.x];
  const TensorRate rate = rate_of(rates, chunk.tensor);
  if (!check->apply) return;
  TensorSquares sum;
  for (int64_t i = threadIdx.x; i < fours(chunk.count) && !rate.frozen; i += kThreads) {
    float gradient[4], weight[4] = {};
    load(reduced + chunk.offset + 4 * i, gradient);
    if (rate.adapted) load(weights + chunk.offset + 4 * i, weight);
    for (int v = 0; v < 4; ++v) {
      sum.gradient += static_cast<double>(gradient[v]) * gradient[v];
      sum.weight += static_cast<double>(weight[v]) * weight[v];
    }
  }
  sum.gradient = block_reduce(sum.gradient, Sum{}, shared);
  sum.weight = block_reduce(sum.weight, Sum{}, shared);
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

// Returns the first chunk of a tensor. Chunks are in the order of their tensors.
__device__ __forceinline__ int first_chunk(const UpdateShape& s, int tensor) {
  int low = 0, high = s.chunk_count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (s.chunks[middle].tensor < tensor) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// A block sums the chunks of one tensor.
__global__ void __launch_bounds__(kThreads)
    tensor_squares_kernel(UpdateShape s, const FiniteCheck* check, const TensorSquares* of_chunks,
                          TensorSquares* of_tensors) {
  __shared__ double shared[32];
  if (!check->apply) return;
  const int tensor = static_cast<int>(blockIdx.x);
  const int begin = first_chunk(s, tensor), end = first_chunk(s, tensor + 1);
  TensorSquares sum;
  for (int c = begin + static_cast<int>(threadIdx.x); c < end; c += kThreads) {
    sum.gradient += of_chunks[c].gradient;
    sum.weight += of_chunks[c].weight;
  }
  sum.gradient = block_reduce(sum.gradient, Sum{}, shared);
  sum.weight = block_reduce(sum.weight, Sum{}, shared);
  if (threadIdx.x == 0) of_tensors[tensor] = sum;
}

// One block sums all tensors and finds the scale of each.
__global__ void __launch_bounds__(kThreads)
    scale_kernel(UpdateShape s, const UpdateRates* rates, const FiniteCheck* check,
                 const TensorSquares* of_tensors, TensorScale* scales) {
  __shared__ double shared[32];
  if (!check->apply) return;
  double all = 0;
  for (int t = threadIdx.x; t < s.tensor_count; t += kThreads) all += of_tensors[t].gradient;
  all = block_reduce(all, Sum{}, shared);
  const float clipped = device::clipped_scale(*rates, check->gradient_scale, all);
#pragma unroll 1  // roots and divisions in double take many registers
  for (int t = threadIdx.x; t < s.tensor_count; t += kThreads) {
    scales[t] = device::tensor_scale(*rates, rate_of(rates, t), clipped, of_tensors[t]);
  }
}

__device__ __forceinline__ TensorScale scale_of(const TensorScale* scales, const FiniteCheck* check,
                                                int tensor) {
  if (scales != nullptr) return scales[tensor];
  return {check->gradient_scale, 1.0f};
}

__global__ void __launch_bounds__(kThreads)
    sgd_kernel(UpdateShape s, const UpdateRates* rates, const FiniteCheck* check,
               const TensorScale* scales, const float* __restrict__ reduced,
               float* __restrict__ weights, float* __restrict__ momenta,
               Bf16* __restrict__ copies) {
  const TensorChunk chunk = s.chunks[blockIdx.x];
  const UpdateRates all = *rates;
  const TensorRate rate = rate_of(rates, chunk.tensor);
  if (!check->apply || rate.frozen) return;
  const TensorScale scale = scale_of(scales, check, chunk.tensor);
  for (int64_t i = threadIdx.x; i < fours(chunk.count); i += kThreads) {
    const int64_t at = chunk.offset + 4 * i;
    float gradient[4], weight[4], momentum[4];
    load(reduced + at, gradient);
    load(weights + at, weight);
    load(momenta + at, momentum);
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      device::sgd(all, rate, scale, gradient[v], &weight[v], &momentum[v]);
    }
    store(weights + at, weight);
    store(momenta + at, momentum);
    if (copies != nullptr) store(copies + at, weight);
  }
}

__global__ void __launch_bounds__(kThreads)
    adam_kernel(UpdateShape s, const UpdateRates* rates, const FiniteCheck* check,
                const TensorScale* scales, const float* __restrict__ reduced,
                float* __restrict__ weights, float* __restrict__ momenta,
                float* __restrict__ second_moments, Bf16* __restrict__ copies) {
  const TensorChunk chunk = s.chunks[blockIdx.x];
  const UpdateRates all = *rates;
  const TensorRate rate = rate_of(rates, chunk.tensor);
  if (!check->apply || rate.frozen) return;
  const TensorScale scale = scale_of(scales, check, chunk.tensor);
  for (int64_t i = threadIdx.x; i < fours(chunk.count); i += kThreads) {
    const int64_t at = chunk.offset + 4 * i;
    float gradient[4], weight[4], first[4], second[4];
    load(reduced + at, gradient);
    load(weights + at, weight);
    load(momenta + at, first);
    load(second_moments + at, second);
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      device::adam(all, rate, scale, gradient[v], &weight[v], &first[v], &second[v]);
    }
    store(weights + at, weight);
    store(momenta + at, first);
    store(second_moments + at, second);
    if (copies != nullptr) store(copies + at, weight);
  }
}

__global__ void __launch_bounds__(kThreads)
    statistics_kernel(UpdateShape s, const FiniteCheck* check, const float* reduced,
                      float* statistics) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= s.channel_count || !check->apply) return;
  const double micro_batches = reduced[s.metrics + static_cast<int>(StepMetric::micro_batches)];
  device::move_statistics(s.channels[c], reduced + s.moments, micro_batches, statistics);
}

}  // namespace

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string("CUDA: ") + what + ": " + cudaGetErrorString(error) + " (" +
                           cudaGetErrorName(error) + ")");
}

void loss(cudaStream_t stream, const LossShape& s, const float* logits, const LossRows& rows,
          void* dlogits, float* sample_metrics, float* metrics) {
  with_number(s.type, [&](auto number) {
    using Number = decltype(number);
    const auto kernel = s.kind == LossKind::binary ? binary_kernel<Number> : softmax_kernel<Number>;
    launch(stream, kernel, s.rows, kLossThreads, s, logits, rows, static_cast<Number*>(dlogits),
           sample_metrics);
  });
  launch(stream, metrics_kernel, 1, kThreads, s.rows, sample_metrics, metrics);
}

void add_logit_bias(cudaStream_t stream, const LinearShape& s, const float* bias, float* logits) {
  const int64_t count = int64_t{s.rows} * s.classes;
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  launch(stream, logit_bias_kernel, blocks, kThreads, count, s, bias, logits);
}

void sum_logit_gradients(cudaStream_t stream, const LinearShape& s, const void* dlogits,
                         float* dbias) {
  const auto blocks = static_cast<unsigned>((s.classes + 31) / 32);
  if (s.type == Precision::bf16) {
    launch(stream, logit_gradient_kernel<Bf16>, blocks, dim3(32, 8), s,
           static_cast<const Bf16*>(dlogits), dbias);
  } else {
    launch(stream, logit_gradient_kernel<float>, blocks, dim3(32, 8), s,
           static_cast<const float*>(dlogits), dbias);
  }
}

void cast_to_fp32(cudaStream_t stream, const TensorChunk* chunks, int count, const void* bf16,
                  float* out) {
  if (count == 0) return;
  launch(stream, to_fp32_kernel, count, kThreads, chunks, static_cast<const Bf16*>(bf16), out);
}

void cast_to_bf16(cudaStream_t stream, int64_t count, const float* values, void* bf16) {
  // The sizes of flat buffers are multiples of GradientLayout's alignment.
  launch(stream, to_bf16_kernel, blocks_for(count / 4), kThreads, count / 4, values,
         static_cast<Bf16*>(bf16));
}

void accumulate(cudaStream_t stream, int64_t count, const float* from, float* into) {
  launch(stream, accumulate_kernel, blocks_for(count), kThreads, count, from, into);
}

void decide(cudaStream_t stream, const UpdateShape& s, const float* reduced, FiniteCheck* check,
            void* scratch) {
  const unsigned blocks = blocks_for(s.numbers / 16, kFlags);
  auto* flags = static_cast<int*>(scratch);
  launch(stream, finite_kernel, blocks, kThreads, s.numbers / 4, reduced, flags);
  launch(stream, decide_kernel, 1, kThreads, s, static_cast<int>(blocks), flags, reduced, check);
}

void scale_tensors(cudaStream_t stream, const UpdateShape& s, const UpdateRates* rates,
                   const FiniteCheck* check, const float* reduced, const float* weights,
                   TensorSquares* squares, TensorScale* scales) {
  TensorSquares* of_tensors = squares + s.chunk_count;
  launch(stream, chunk_squares_kernel, s.chunk_count, kThreads, s, rates, check, reduced, weights,
         squares);
  launch(stream, tensor_squares_kernel, s.tensor_count, kThreads, s, check, squares, of_tensors);
  launch(stream, scale_kernel, 1, kThreads, s, rates, check, of_tensors, scales);
}

void update(cudaStream_t stream, const UpdateShape& s, const UpdateRates* rates,
            const FiniteCheck* check, const TensorScale* scales, const float* reduced,
            const UpdatedStates& states) {
  auto* copies = static_cast<Bf16*>(states.copies);
  if (states.second_moments != nullptr) {
    launch(stream, adam_kernel, s.chunk_count, kThreads, s, rates, check, scales, reduced,
           states.weights, states.momenta, states.second_moments, copies);
  } else {
    launch(stream, sgd_kernel, s.chunk_count, kThreads, s, rates, check, scales, reduced,
           states.weights, states.momenta, copies);
  }
}

void move_statistics(cudaStream_t stream, const UpdateShape& s, const FiniteCheck* check,
                     const float* reduced, float* statistics) {
  if (s.channel_count == 0) return;
  launch(stream, statistics_kernel, blocks_for(s.channel_count), kThreads, s, check, reduced,
         statistics);
}

void blend(cudaStream_t stream, int64_t count, float decay, bool pull, float* average,
           float* current) {
  if (count == 0) return;
  launch(stream, blend_kernel, blocks_for(count), kThreads, count, decay, pull, average, current);
}

}  // namespace stoker::cuda
