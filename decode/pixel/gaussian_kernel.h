// The weights of torchvision's Gaussian blur, bit for bit. Internal to decode/pixel.
#pragma once

namespace stoker {

// A symmetric kernel of one dimension: weights[t] belongs to the taps `t` away from the middle,
// 0 <= t <= half.
struct HalfKernel {
  const float* weights;
  int half;
};

// Sets `weights`, size / 2 + 1 of them, to those that torchvision's kernel of `size` taps (odd) has
// where torch runs with AVX-512: a softmax of -(x / sigma)^2 for x from -lim to lim, lim =
// (size - 1) / sqrt(8). Each step is torch's float arithmetic: linspace with fused products, the
// exponential of SLEEF (expf, 1 ulp), a sum over vectors of 16 and a product with its reciprocal.
// `sigma` is in pixels; numbers outside 1e-6..1e6 are taken as the nearest of these.
HalfKernel make_gaussian_kernel(int size, double sigma, float* weights);

}  // namespace stoker
