// Warps: Pillow's pixels by hash (tests/golden/pixel/make_golden_geometry.py), and the fast ones
// against their plain twins on every instruction set of this machine.

// So that the list of instruction sets has the one with AVX-512 VBMI, which warp_nearest.cc uses.
#define HWY_WANT_AVX3_DL

#include "decode/pixel/warp.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/decode/every_target.h"
#include "tests/decode/pixels.h"
#include "tests/decode/warp_request.h"
#include "tests/support/warp_reference.h"

namespace stoker {
namespace {

constexpr Interpolation kAll[] = {Interpolation::nearest, Interpolation::bilinear,
                                  Interpolation::bicubic};

TEST(GoldenWarps, ArePillowsAndTorchvisions) {
  std::ifstream lines(std::string(STOKER_GOLDEN_DIR) + "/pixel/warps.txt");
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    SCOPED_TRACE(line);
    std::istringstream words(line);
    std::string hash, name;
    Size size;
    uint32_t seed = 0;
    words >> hash >> size.width >> size.height >> seed >> name;
    WarpPicture picture(size);
    const std::vector<uint8_t> pixels = noise(size, seed).packed();
    std::copy(pixels.begin(), pixels.end(), picture.view().data);
    WarpNumbers numbers(words);
    EXPECT_EQ(fnv1a(answer_to_warp(name, picture, numbers).bytes()), hash);
  }
  EXPECT_EQ(count, 378);
}

using WarpOnTarget = EveryTarget;

// Ordinary matrices, and numbers of any kind.
class NumberDraw {
 public:
  explicit NumberDraw(uint32_t seed) : random_(seed) {}
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  double between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  double any() {
    constexpr double kOdd[] = {0.0,   -0.0,   1.0,   -1.0,   0.5,  2.0,     1e-12,
                               1e300, -1e300, 3e9,   -3e9,   1e-6, 32768.,  65535.5,
                               1e18,  -2.1e9, 70000, -70000, NAN,  INFINITY};
    return below(3) == 0 ? kOdd[below(std::size(kOdd))] : between(-3, 3);
  }
  // The source coordinates stay near the source.
  template <size_t kCount>
  std::array<double, kCount> matrix(Size in) {
    std::array<double, kCount> m{};
    const bool is_odd = below(3) == 0;
    for (double& value : m) value = is_odd ? any() : between(-1.2, 1.2);
    if (below(4) == 0) m[1] = m[3] = 0.0;
    if (below(4) != 0) m[2] = between(-10, in.width), m[5] = between(-10, in.height);
    if (!is_odd) {
      for (size_t i = 6; i < kCount; ++i) m[i] = between(-0.01, 0.02);
    }
    return m;
  }

 private:
  std::mt19937 random_;
};

template <class Fast, class Plain>
void expect_same_warp(const Pixels& in, Size size, int gap, const Fast& fast, const Plain& plain) {
  Pixels out(size, gap), expected(size);
  fast(in.view(), out.view());
  plain(in.view(), expected.view());
  ASSERT_EQ(out.packed(), expected.packed())
      << in.size().width << "x" << in.size().height << " -> " << size.width << "x" << size.height;
  ASSERT_TRUE(out.gaps_intact());
}

TEST_P(WarpOnTarget, EqualsThePlainTwin) {
  NumberDraw draw(5);
  for (int i = 0; i < 3000; ++i) {
    const int largest = i % 20 == 0 ? 300 : 40;
    const Size from{1 + draw.below(largest), 1 + draw.below(largest)};
    const Size to{1 + draw.below(largest), 1 + draw.below(largest)};
    const Pixels in = noise(from, static_cast<uint32_t>(i), i % 4);
    const Interpolation how = kAll[i % 3];
    const Rgb fill = i % 2 == 0 ? Rgb{7, 7, 7} : Rgb{1, 200, 30};
    const auto m = draw.matrix<6>(from);
    const auto c = draw.matrix<8>(from);
    SCOPED_TRACE("trial " + std::to_string(i));
    expect_same_warp(
        in, to, i % 5, [&](ImageView a, MutableImageView b) { warp_affine(a, m, how, fill, b); },
        [&](ImageView a, MutableImageView b) { warp_affine_reference(a, m, how, fill, b); });
    expect_same_warp(
        in, to, i % 5,
        [&](ImageView a, MutableImageView b) { warp_perspective(a, c, how, fill, b); },
        [&](ImageView a, MutableImageView b) { warp_perspective_reference(a, c, how, fill, b); });
    if (HasFatalFailure()) return;
  }
}

// Wide rows show how the coordinates of nearest pixels are counted.
void expect_same_row(int width, int out_width, const std::array<double, 6>& m) {
  const Pixels in = noise({width, 1}, 4);
  Pixels out({out_width, 1}), expected({out_width, 1});
  warp_affine(in.view(), m, Interpolation::nearest, {9, 8, 7}, out.view());
  warp_affine_reference(in.view(), m, Interpolation::nearest, {9, 8, 7}, expected.view());
  EXPECT_EQ(out.packed(), expected.packed());
}

TEST(NearestWarp, OnlyScalesInDouble) { expect_same_row(3000, 4000, {0.7371, 0, 0.2, 0, 1, 0}); }

// The step is 0.6 of the smallest, and is rounded up: the sums leave 32 bits within the row.
TEST(NearestWarp, WrapsAroundAsPillowDoes) {
  expect_same_row(33'000, 1'000'000, {0.6 / 65'536, 1e-9, 32'755, 1e-9, 1, 0});
}

// A source whose bytes do not have 31-bit places: only its addresses are large, not its memory.
TEST_P(WarpOnTarget, TakesPixelsBeyondTwoGigabytes) {
  constexpr ptrdiff_t kStride = ptrdiff_t{1} << 30;
  constexpr int kRows = 7;
  void* memory = mmap(nullptr, size_t{kRows} << 30, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const Pixels source = noise({20, kRows}, 3);
  const MutableImageView far{static_cast<uint8_t*>(memory), 20, kRows, kStride};
  for (int y = 0; y < kRows; ++y) std::copy_n(source.pixel(0, y), 60, far.data + y * kStride);
  for (const Interpolation how : kAll) {
    const std::array<double, 6> m = {0.9, 0.1, 0.3, -0.1, 0.9, 0.8};
    Pixels out({20, kRows}), expected({20, kRows});
    warp_affine(far, m, how, {1, 2, 3}, out.view());
    warp_affine_reference(source.view(), m, how, {1, 2, 3}, expected.view());
    EXPECT_EQ(out.packed(), expected.packed());
  }
  munmap(memory, size_t{kRows} << 30);
}

INSTANTIATE_TEST_SUITE_P(Targets, WarpOnTarget, every_target(), target_name);

TEST(WarpMatrix, QuarterTurnsAreThoseOfPillow) {
  const Size wide{40, 30}, square{30, 30};
  EXPECT_EQ(quarter_turns(0, wide, false, false), 0);
  EXPECT_EQ(quarter_turns(-720, wide, false, false), 0);
  EXPECT_EQ(quarter_turns(180, wide, false, false), 2);
  EXPECT_EQ(quarter_turns(-90, square, false, false), 3);
  EXPECT_EQ(quarter_turns(450, wide, true, false), 1);
  EXPECT_EQ(quarter_turns(90, wide, false, false), std::nullopt);
  EXPECT_EQ(quarter_turns(180, square, false, true), std::nullopt);
  EXPECT_EQ(quarter_turns(1e-9, square, true, false), std::nullopt);
}

TEST(WarpMatrix, CornersOnALineHaveNoPerspective) {
  const Corners square = {{{0, 0}, {9, 0}, {9, 9}, {0, 9}}};
  const Corners line = {{{0, 0}, {1, 1}, {2, 2}, {3, 3}}};
  EXPECT_EQ(perspective_coefficients(square, line), std::nullopt);
  const auto same = perspective_coefficients(square, square);
  ASSERT_TRUE(same.has_value());
  EXPECT_EQ(*same, (std::array<double, 8>{1, 0, 0, 0, 1, 0, 0, 0}));
}

}  // namespace
}  // namespace stoker
