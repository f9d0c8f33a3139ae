#include "train/cuda/folded_conv.h"

#include <stdexcept>
#include <utility>

#include "train/cuda/kernels.h"

namespace stoker {
namespace {

constexpr int64_t kFoldAlignment = 256;  // of buffers, see DeviceOps

int64_t type_bytes(const ConvShape& s) { return s.type == Precision::bf16 ? 2 : 4; }

int64_t workspace_aligned(int64_t bytes) {
  return (bytes + kFoldAlignment - 1) / kFoldAlignment * kFoldAlignment;
}

int64_t pixel_bytes(const ConvShape& s) {
  return workspace_aligned(int64_t{s.rows} * s.in_height * s.in_width * s.in_channels *
                           type_bytes(s));
}

int64_t weight_bytes(const ConvShape& s) {
  return workspace_aligned(int64_t{s.out_channels} * s.kernel.height * s.kernel.width *
                           s.in_channels * type_bytes(s));
}

class FoldedConv final : public DeviceConv {
 public:
  FoldedConv(cudaStream_t stream, const FoldedShape& shape, std::unique_ptr<DeviceConv> inner)
      : stream_(stream), shape_(shape), inner_(std::move(inner)) {}

  int64_t workspace_bytes(ConvPass pass) const override {
    require_no_input_gradient(pass);
    return pixel_bytes(shape_.folded) + weight_bytes(shape_.folded) + inner_->workspace_bytes(pass);
  }
  std::string implementation(ConvPass pass) const override {
    require_no_input_gradient(pass);
    return inner_->implementation(pass) + ", on squares of 2x2 pixels";
  }
  void run(ConvPass pass, const void* a, const void* b, void* out, void* workspace) override {
    require_no_input_gradient(pass);
    auto* const pixels = static_cast<std::byte*>(workspace);
    std::byte* const weights = pixels + pixel_bytes(shape_.folded);
    std::byte* const rest = weights + weight_bytes(shape_.folded);
    cuda::fold_pixels(stream_, shape_, a, pixels);
    if (pass == ConvPass::forward) {
      cuda::fold_weights(stream_, shape_, b, weights);
      inner_->run(pass, pixels, weights, out, rest);
    } else {
      inner_->run(pass, pixels, b, weights, rest);
      cuda::unfold_weights(stream_, shape_, weights, out);
    }
  }

 private:
  static void require_no_input_gradient(ConvPass pass) {
    if (pass == ConvPass::backward_data) {
      throw std::logic_error("a convolution of an image has no gradient of its input");
    }
  }

  const cudaStream_t stream_;
  const FoldedShape shape_;
  const std::unique_ptr<DeviceConv> inner_;
};

}  // namespace

std::unique_ptr<DeviceConv> make_folded_conv(cudaStream_t stream, const FoldedShape& shape,
                                             std::unique_ptr<DeviceConv> inner) {
  return std::make_unique<FoldedConv>(stream, shape, std::move(inner));
}

}  // namespace stoker
