// Compares one training step of whole models on the CPU engine with PyTorch.
#include "tests/train/golden_fixture.h"

namespace stoker {
namespace {

void compare_with_golden(const std::string& model, const GoldenTolerance& tolerance,
                         bool mixed = false, const std::vector<int>& widths = {}) {
  const auto step = [](Engine& engine, const TestBatch& batch, const TestSgd& sgd) {
    train_step(engine, batch, sgd);
  };
  compare_with_pytorch(model, tolerance, make_cpu_engine, step, mixed, widths);
}

// Two values of a pooling window differ by less than fp32's rounding, so that either may be the
// maximum: gradients that the backward pass computes after it differ by up to 2e-3.
TEST(GoldenTest, AirnetIsPyTorchs) { compare_with_golden("airnet", {1e-5, 5e-3, 1e-5, 1e-3}); }

TEST(GoldenTest, MixedLabelsArePyTorchs) {
  compare_with_golden("airnet", {1e-5, 5e-3, 1e-5, 1e-3}, true);
}

// One of about 800,000 ReLU inputs is within fp32's rounding of zero: gradients that the backward
// pass computes after it differ by up to 1e-3, those before it by less than 1e-4.
TEST(GoldenTest, Resnet18IsPyTorchs) { compare_with_golden("resnet18", {1e-5, 5e-3, 1e-4, 1e-2}); }

TEST(GoldenTest, AlexnetIsPyTorchs) { compare_with_golden("alexnet", {1e-5, 1e-4, 1e-5, 1e-3}); }

TEST(GoldenTest, VggIsPyTorchs) {
  const std::vector<int> widths{8, 16, 16, 24, 24, 32};
  compare_with_golden("vgg16", {1e-5, 1e-4, 1e-5, 1e-3}, false, widths);
  compare_with_golden("vgg16_bn", {1e-5, 1e-4, 1e-5, 1e-3}, false, widths);
}

// In deeper nets a few more ReLUs and maxima flip, as in resnet18. Their logits show that the net
// is the same; gradients of single operations are compared in gradient_test.cc.
TEST(GoldenTest, DensenetIsPyTorchs) {
  compare_with_golden("densenet40", {1e-5, 5e-2, 1e-3, 5e-2});
}

TEST(GoldenTest, GooglenetIsPyTorchs) {
  compare_with_golden("googlenet", {1e-4, 2e-1, 5e-2, 1e-1});
}

// This net enlarges differences of rounding: the logits after a step have a norm of 4e7, and move
// by a tenth of it with another algorithm for convolutions.
TEST(GoldenTest, InceptionIsPyTorchs) {
  compare_with_golden("inception_v3", {1e-4, 3e-1, 2e-1, 3e-1});
}

}  // namespace
}  // namespace stoker
