// Tests of the emulated kernels that scale an update's tensors against the plain loops, with more
// chunks in a tensor than a block has threads, and more tensors, too.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/support/cuda_emulator.h"
#include "tests/support/host_ops.h"
#include "tests/train/device_fixture.h"

namespace stoker {
namespace {

TEST(KernelUpdateTest, ScalesAreThePlainLoops) {
  const std::vector<int> chunks_of = [] {
    std::vector<int> counts = {280, 1, 3};
    counts.resize(260, 1);
    return counts;
  }();
  std::vector<TensorChunk> chunks;
  for (size_t t = 0; t < chunks_of.size(); ++t) {
    for (int c = 0; c < chunks_of[t]; ++c) {
      chunks.push_back({static_cast<int64_t>(4 * chunks.size()), 4, static_cast<int>(t)});
    }
  }
  const size_t numbers = 4 * chunks.size(), tensors = chunks_of.size();
  std::vector<float> gradients(numbers), weights(numbers);
  for (size_t i = 0; i < numbers; ++i) {
    gradients[i] = static_cast<float>(noise(1, static_cast<uint32_t>(i)) % 1000) * 1e-3f - 0.5f;
    weights[i] = static_cast<float>(noise(2, static_cast<uint32_t>(i)) % 1000) * 1e-3f - 0.5f;
  }
  std::vector<std::byte> rates(sizeof(UpdateRates) + tensors * sizeof(TensorRate));
  UpdateRates head;
  head.trust = 0.01f;
  head.clip_norm = 2;
  std::memcpy(rates.data(), &head, sizeof head);
  for (size_t t = 0; t < tensors; ++t) {
    const TensorRate rate{0.1f, 0.05f, t % 7 == 3 ? 1 : 0, t % 3 == 0 ? 1 : 0, 0};
    std::memcpy(rates.data() + sizeof head + t * sizeof rate, &rate, sizeof rate);
  }
  UpdateShape shape;
  shape.chunks = chunks.data();
  shape.chunk_count = static_cast<int>(chunks.size());
  shape.tensor_count = static_cast<int>(tensors);
  FiniteCheck check;
  check.apply = 1;
  check.gradient_scale = 0.5f;

  const auto stream = host_device().make_stream();
  const auto scales_of = [&](DeviceOps& ops) {
    std::vector<TensorSquares> squares(chunks.size() + tensors);
    std::vector<TensorScale> scales(tensors);
    ops.scale_tensors(shape, reinterpret_cast<const UpdateRates*>(rates.data()), &check,
                      gradients.data(), weights.data(), squares.data(), scales.data());
    stream->synchronize();
    return scales;
  };
  const auto kernels = scales_of(*emulated_cuda_ops_factory()(host_device(), *stream));
  const auto loops = scales_of(*host_ops_factory()(host_device(), *stream));
  for (size_t t = 0; t < tensors; ++t) {
    EXPECT_FLOAT_EQ(kernels[t].gradient, loops[t].gradient) << t;
    EXPECT_LT(kernels[t].gradient, 0.5f);  // it was clipped
    EXPECT_FLOAT_EQ(kernels[t].trust, loops[t].trust) << t;
    EXPECT_EQ(kernels[t].trust == 1, t % 3 != 0 || t % 7 == 3) << t;
  }
}

}  // namespace
}  // namespace stoker
