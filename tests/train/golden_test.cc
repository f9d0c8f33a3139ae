// One training step of whole models on the CPU engine against PyTorch.
#include "tests/train/golden_fixture.h"

namespace stoker {
namespace {

void compare(const std::string& model, const GoldenTolerance& tolerance) {
  compare_with_pytorch(model, tolerance, make_cpu_engine,
                       [](Engine& engine, const TestBatch& batch, const TestSgd& sgd) {
                         train_step(engine, batch, sgd);
                       });
}

TEST(GoldenTest, AirnetIsPyTorchs) { compare("airnet", {1e-5, 1e-4, 1e-5, 1e-3}); }

// Of some 800,000 ReLUs one lies within fp32's rounding of its edge: what is behind it in the
// backward pass differs by up to 1e-3, what is before it by less than 1e-4.
TEST(GoldenTest, Resnet18IsPyTorchs) { compare("resnet18", {1e-5, 5e-3, 1e-4, 1e-2}); }

}  // namespace
}  // namespace stoker
