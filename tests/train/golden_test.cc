// Compares one training step of whole models on the CPU engine with PyTorch.
#include "tests/train/golden_fixture.h"

namespace stoker {
namespace {

void compare(const std::string& model, const GoldenTolerance& tolerance, bool mixed = false) {
  const auto step = [](Engine& engine, const TestBatch& batch, const TestSgd& sgd) {
    train_step(engine, batch, sgd);
  };
  compare_with_pytorch(model, tolerance, make_cpu_engine, step, mixed);
}

TEST(GoldenTest, AirnetIsPyTorchs) { compare("airnet", {1e-5, 1e-4, 1e-5, 1e-3}); }

TEST(GoldenTest, MixedLabelsArePyTorchs) { compare("airnet", {1e-5, 1e-4, 1e-5, 1e-3}, true); }

// One of about 800,000 ReLU inputs is within fp32's rounding of zero: gradients that the backward
// pass computes after it differ by up to 1e-3, those before it by less than 1e-4.
TEST(GoldenTest, Resnet18IsPyTorchs) { compare("resnet18", {1e-5, 5e-3, 1e-4, 1e-2}); }

}  // namespace
}  // namespace stoker
