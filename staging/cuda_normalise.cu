// One kernel: a block takes its share of the quads in strides of the grid, and looks up every pixel
// in a table that it has copied to shared memory.
#include <algorithm>
#include <cstdint>

#include "staging/cuda_kernels.h"
#include "staging/cuda_launch.h"
#include "staging/normalise_body.h"

namespace stoker {
namespace {

constexpr int kNormaliseThreads = 256;
constexpr int64_t kMaxBlocks = 2048;  // more blocks would only copy the table more often

// kChannels 0: any number of channels, (rows, channels, plane).
template <typename Bits, int kChannels>
__global__ void __launch_bounds__(kNormaliseThreads)
    normalise_kernel(const __grid_constant__ NormaliseArgs args, int64_t quads, int64_t pixels) {
  __shared__ Bits values[3 * 256];
  const uint32_t* all = &args.table[0][0];
  for (int i = static_cast<int>(threadIdx.x); i < 3 * 256; i += kNormaliseThreads) {
    values[i] = static_cast<Bits>(all[i]);
  }
  __syncthreads();
  const auto table = [&](int channel, uint8_t pixel) { return values[channel * 256 + pixel]; };
  Bits* out = static_cast<Bits*>(args.out);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kNormaliseThreads + threadIdx.x;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kNormaliseThreads;
  for (int64_t quad = first; quad < quads; quad += stride) {
    if constexpr (kChannels == 0) {
      expand_quad_nchw(args.images, out, quad, args.plane, args.channels, table);
    } else {
      expand_quad_nhwc<Bits, kChannels>(args.images, out, quad, table);
    }
  }
  for (int64_t pixel = quads * 4 + first; pixel < pixels; pixel += stride) {
    expand_pixel(args.images, out, pixel, args.plane, args.channels, kChannels == 0, table);
  }
}

template <typename Bits>
cudaError_t launch(cudaStream_t stream, const NormaliseArgs& args) {
  const int64_t pixels = args.rows * args.plane;
  const int64_t quads = normalise_quads(args);
  const int64_t threads = std::max(quads, pixels - quads * 4);
  const auto blocks = static_cast<unsigned>(
      std::min((threads + kNormaliseThreads - 1) / kNormaliseThreads, kMaxBlocks));
  const auto run = [&](auto kernel) {
    return launch_kernel(stream, kernel, blocks, kNormaliseThreads, args, quads, pixels);
  };
  if (args.order == PixelOrder::nchw) return run(normalise_kernel<Bits, 0>);
  if (args.channels == 3) return run(normalise_kernel<Bits, 3>);
  if (args.channels == 4) return run(normalise_kernel<Bits, 4>);
  return run(normalise_kernel<Bits, 8>);
}

template <typename Bits>
cudaError_t load() {
  return load_kernels(normalise_kernel<Bits, 0>, normalise_kernel<Bits, 3>,
                      normalise_kernel<Bits, 4>, normalise_kernel<Bits, 8>);
}

}  // namespace

cudaError_t load_normalise() {
  const cudaError_t error = load<uint16_t>();
  return error == cudaSuccess ? load<uint32_t>() : error;
}

cudaError_t launch_normalise(cudaStream_t stream, const NormaliseArgs& args) {
  return args.type == PixelType::fp32 ? launch<uint32_t>(stream, args)
                                      : launch<uint16_t>(stream, args);
}

}  // namespace stoker
