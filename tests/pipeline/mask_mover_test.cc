// Moved masks and label images: torchvision's by hash (tests/golden/annotation/make_masks.py), and
// a plain twin, which makes the whole picture after each motion.
#include "pipeline/annotation/mask_mover.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "tests/pipeline/golden_masks.h"

namespace stoker {
namespace {

constexpr int32_t kFillLabel = 255;

// A picture of labels, and a function that says which of its pixels is where in a new one.
struct PlainLabels {
  Size size;
  std::vector<int32_t> labels;

  int32_t at(int x, int y) const {
    const bool is_inside = x >= 0 && x < size.width && y >= 0 && y < size.height;
    return is_inside ? labels[static_cast<size_t>(y) * size.width + x] : kFillLabel;
  }
  template <class Source>
  PlainLabels moved(Size to, const Source& source) const {
    PlainLabels out{to, {}};
    for (int y = 0; y < to.height; ++y) {
      for (int x = 0; x < to.width; ++x) {
        const auto [from_x, from_y] = source(x, y);
        out.labels.push_back(at(from_x, from_y));
      }
    }
    return out;
  }
};

using Pixel = std::pair<int, int>;

// The nearest pixel to a coordinate from -1 to 1; -1 if there is none.
int sampled_pixel(float at, int size) {
  const float pixel = std::nearbyint((at + 1) * (static_cast<float>(size) / 2) - 0.5F);
  return pixel >= 0 && pixel < static_cast<float>(size) ? static_cast<int>(pixel) : -1;
}

// The sum of a warp's row of numbers, divided as torchvision does before it multiplies.
float warp_sum(const double* m, double last, float half, float x, float y) {
  const auto number = [&](double value) { return static_cast<float>(value) / half; };
  return (x * number(m[0]) + y * number(m[1])) + number(last);
}

Pixel warped_pixel(const Movement& warp, int x, int y) {
  const auto& m = warp.values;
  const Size in = warp.before, out = warp.after;
  if (warp.motion == Motion::perspective) {
    const float px = static_cast<float>(x) + 0.5F, py = static_cast<float>(y) + 0.5F;
    const float under = warp_sum(&m[6], 1, 1, px, py);
    const float u = warp_sum(&m[0], m[2], static_cast<float>(out.width) / 2, px, py) / under - 1;
    const float v = warp_sum(&m[3], m[5], static_cast<float>(out.height) / 2, px, py) / under - 1;
    return {sampled_pixel(u, in.width), sampled_pixel(v, in.height)};
  }
  const float px = static_cast<float>(x) - static_cast<float>(out.width - 1) / 2;
  const float py = static_cast<float>(y) - static_cast<float>(out.height - 1) / 2;
  const double c = m[2] + m[0] * out.width * 0.5 + m[1] * out.height * 0.5 - in.width * 0.5;
  const double f = m[5] + m[3] * out.width * 0.5 + m[4] * out.height * 0.5 - in.height * 0.5;
  return {sampled_pixel(warp_sum(&m[0], c, static_cast<float>(in.width) / 2, px, py), in.width),
          sampled_pixel(warp_sum(&m[3], f, static_cast<float>(in.height) / 2, px, py), in.height)};
}

int resized_from(int at, int in, int out) {
  if (in == out) return at;
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  return std::min(static_cast<int>(std::floor(static_cast<float>(at) * scale)), in - 1);
}

PlainLabels moved_plainly(const PlainLabels& in, const Movement& m) {
  const auto value = [&](size_t i) { return static_cast<int>(m.values[i]); };
  return in.moved(m.after, [&](int x, int y) -> Pixel {
    switch (m.motion) {
      case Motion::crop:
        return {x + value(0), y + value(1)};
      case Motion::resize:
        return {resized_from(x, in.size.width, m.after.width),
                resized_from(y, in.size.height, m.after.height)};
      case Motion::flip:
        return {in.size.width - 1 - x, y};
      case Motion::vertical_flip:
        return {x, in.size.height - 1 - y};
      case Motion::turn:
        if (value(0) == 1) return {in.size.width - 1 - y, x};
        if (value(0) == 2) return {in.size.width - 1 - x, in.size.height - 1 - y};
        return {y, in.size.height - 1 - x};
      case Motion::pad:
        return {x - value(0), y - value(1)};
      case Motion::affine:
      case Motion::perspective:
        return warped_pixel(m, x, y);
      default:
        return {x, y};
    }
  });
}

class MotionDraw {
 public:
  explicit MotionDraw(uint32_t seed) : random_(seed) {}
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  double between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  Size size(int most) { return {1 + below(most), 1 + below(most)}; }

  Movement motion(Size in, bool with_warps) {
    Movement m{static_cast<Motion>(int{static_cast<int>(Motion::crop)} + below(with_warps ? 8 : 6)),
               in,
               in,
               {}};
    const auto set = [&](std::initializer_list<double> values) {
      std::copy(values.begin(), values.end(), m.values.begin());
    };
    const double w = in.width, h = in.height;
    if (m.motion == Motion::crop) {
      m.after = {1 + below(in.width), 1 + below(in.height)};
      set({double(below(in.width - m.after.width + 1)),
           double(below(in.height - m.after.height + 1)), double(m.after.width),
           double(m.after.height)});
    } else if (m.motion == Motion::resize) {
      m.after = size(150);
    } else if (m.motion == Motion::turn) {
      const int quarters = 1 + below(3);
      if (quarters != 2) m.after = {in.height, in.width};
      set({double(quarters)});
    } else if (m.motion == Motion::pad) {
      const int sides[4] = {below(9), below(2) * below(70), below(9), below(9)};
      m.after = {in.width + sides[0] + sides[2], in.height + sides[1] + sides[3]};
      set({double(sides[0]), double(sides[1]), double(sides[2]), double(sides[3])});
    } else if (m.motion == Motion::affine) {
      m.after = below(3) == 0 ? size(150) : in;
      set({between(-2, 2), between(-1, 1), between(-5, 20), between(-1, 1), between(-2, 2), h / 3});
    } else if (m.motion == Motion::perspective) {
      set({1, between(-.3, .3), between(-.2, .2) * w, between(-.3, .3), 1, between(-.2, .2) * h,
           between(-.5, .5) / w, between(-.5, .5) / h});
    }
    return m;
  }

 private:
  std::mt19937 random_;
};

// A picture with an object of polygons, the same in runs, and labels.
struct DrawnPicture {
  DrawnPicture(MotionDraw& draw, int label_bytes) {
    annotations.size = draw.size(120);
    const auto [width, height] = annotations.size;
    std::vector<std::vector<uint32_t>> runs;
    for (int i = 0; i <= draw.below(3); ++i) {
      std::vector<std::array<double, 2>> points(3 + static_cast<size_t>(draw.below(5)));
      for (auto& [x, y] : points) {
        x = draw.between(-10, width + 10);
        y = draw.between(-10, height + 10);
      }
      append_polygon_runs(points, annotations.size, runs.emplace_back());
      annotations.polygons.push_back(
          {static_cast<uint32_t>(annotations.points.size()), static_cast<uint32_t>(points.size())});
      annotations.points.insert(annotations.points.end(), points.begin(), points.end());
    }
    annotations.runs = united_runs(runs);
    labels.size = image.size = annotations.size;
    image.label_bytes = label_bytes;
    for (int i = 0; i < width * height; ++i) {
      labels.labels.push_back(draw.below(label_bytes == 1 ? 250 : 1 << 24));
      const auto* const bytes = reinterpret_cast<const uint8_t*>(&labels.labels.back());
      image.pixels.insert(image.pixels.end(), bytes, bytes + label_bytes);
    }
    mask.size = annotations.size;
    mask.labels.resize(labels.labels.size());
    bool is_one = false;
    size_t at = 0;
    for (const uint32_t run : annotations.runs) {
      for (const size_t end = at + run; at < end; ++at) {
        mask.labels[at % height * width + at / height] = is_one ? 1 : 0;
      }
      is_one = !is_one;
    }
  }

  MaskShape polygons() const {
    return {MaskKind::polygons, 0, static_cast<uint32_t>(annotations.polygons.size())};
  }
  MaskShape runs() const {
    return {MaskKind::runs, 0, static_cast<uint32_t>(annotations.runs.size())};
  }

  Annotations annotations;
  LabelImage image;
  PlainLabels labels, mask;
};

std::vector<uint8_t> made_mask(MaskMover& mover, const DrawnPicture& picture,
                               const MaskShape& shape, MaskForm form) {
  const auto width = static_cast<size_t>(mover.size().width);
  std::vector<uint8_t> bytes(
      (form == MaskForm::bits ? (width + 7) / 8 : width) * static_cast<size_t>(mover.size().height),
      0xA5);
  mover.make_mask(picture.annotations, shape, form, reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

std::vector<int32_t> made_labels(MaskMover& mover, const LabelImage& image) {
  const auto [width, height] = mover.size();
  std::vector<uint8_t> bytes(static_cast<size_t>(width) * height * image.label_bytes, 0xA5);
  mover.make_labels(image, kFillLabel, reinterpret_cast<std::byte*>(bytes.data()));
  if (image.label_bytes == 1) return {bytes.begin(), bytes.end()};
  std::vector<int32_t> labels(bytes.size() / 4);
  std::memcpy(labels.data(), bytes.data(), bytes.size());
  return labels;
}

void check_motions_plainly(uint32_t seed, bool with_warps) {
  MotionDraw draw(seed);
  MaskMover mover;  // for all: nothing is left of the picture before
  int64_t ones = 0;
  for (int i = 0; i < 400; ++i) {
    const DrawnPicture picture(draw, i % 2 == 0 ? 1 : 4);
    PlainLabels labels = picture.labels, mask = picture.mask;
    mover.begin(labels.size);
    for (int count = draw.below(6); count > 0; --count) {
      const Movement movement = draw.motion(labels.size, with_warps);
      labels = moved_plainly(labels, movement);
      mask = moved_plainly(mask, movement);
      mover.move(movement);
      if (draw.below(4) == 0) {  // asked on the way, too
        made_labels(mover, picture.image);
        made_mask(mover, picture, picture.polygons(), MaskForm::bytes);
      }
    }
    ASSERT_EQ(mover.size(), labels.size);
    ASSERT_EQ(made_labels(mover, picture.image), labels.labels);
    std::vector<uint8_t> bytes, bits;
    for (size_t at = 0; at < mask.labels.size(); ++at) {
      const size_t x = at % static_cast<size_t>(mask.size.width);
      bytes.push_back(mask.labels[at] == 1);
      if (x % 8 == 0) bits.push_back(0);
      bits.back() = static_cast<uint8_t>(bits.back() | bytes.back() << x % 8);
      ones += bytes.back();
    }
    for (const MaskShape& shape : {picture.polygons(), picture.runs()}) {
      ASSERT_EQ(made_mask(mover, picture, shape, MaskForm::bytes), bytes);
      ASSERT_EQ(made_mask(mover, picture, shape, MaskForm::bits), bits);
    }
  }
  EXPECT_GT(ones, 100000);
}

TEST(MaskMover, MovesAsTorchvision) { EXPECT_EQ(check_golden_masks("motions.txt"), 400); }

TEST(MaskMover, ColumnsAndRowsAreThoseOfWholePictures) { check_motions_plainly(1, false); }

TEST(MaskMover, WarpsAreThoseOfWholePictures) { check_motions_plainly(2, true); }

TEST(MaskMover, PutsTheLeftmostPixelIntoTheLowestBit) {
  Annotations annotations;
  annotations.size = {10, 2};
  annotations.runs = {1, 2, 14, 1, 1, 1};  // (0, 1), (1, 0), (8, 1), (9, 1)
  MaskMover mover;
  mover.begin(annotations.size);
  std::vector<uint8_t> bits(4, 0xA5), bytes(20, 0xA5);
  mover.make_mask(annotations, {MaskKind::runs, 0, 6}, MaskForm::bits,
                  reinterpret_cast<std::byte*>(bits.data()));
  EXPECT_EQ(bits, (std::vector<uint8_t>{2, 0, 1, 3}));
  mover.make_mask(annotations, {}, MaskForm::bits, reinterpret_cast<std::byte*>(bits.data()));
  EXPECT_EQ(bits, std::vector<uint8_t>(4, 0));
  mover.make_mask(annotations, {}, MaskForm::bytes, reinterpret_cast<std::byte*>(bytes.data()));
  EXPECT_EQ(bytes, std::vector<uint8_t>(20, 0));
}

TEST(MaskMover, KeepsNothingOfTheObjectBefore) {
  Annotations annotations;
  annotations.size = {4, 3};
  annotations.runs = {1, 1, 10, 4, 2, 6};
  const auto mask = [&](MaskMover& mover, const MaskShape& shape) {
    std::vector<uint8_t> bytes(12, 0xA5);
    mover.make_mask(annotations, shape, MaskForm::bytes,
                    reinterpret_cast<std::byte*>(bytes.data()));
    return bytes;
  };
  MaskMover mover;
  mover.begin(annotations.size);
  EXPECT_EQ(mask(mover, {MaskKind::runs, 3, 3}),
            (std::vector<uint8_t>{0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(mask(mover, {MaskKind::runs, 0, 3}),
            (std::vector<uint8_t>{0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(MaskMover, ResizesTwiceAsTwoResizes) {
  LabelImage image{{4, 1}, 1, {10, 11, 12, 13}};
  MaskMover mover;
  mover.begin(image.size);
  mover.move({Motion::resize, {4, 1}, {2, 1}, {2, 1}});
  mover.move({Motion::resize, {2, 1}, {3, 1}, {3, 1}});
  EXPECT_EQ(made_labels(mover, image), (std::vector<int32_t>{10, 10, 12}));
}

TEST(MaskMover, MotionsOfObjectsChangeNothing) {
  Annotations annotations;
  annotations.size = {4, 3};
  annotations.runs = {4, 1, 2, 1, 4};
  MaskMover mover;
  mover.begin(annotations.size);
  for (const Motion motion :
       {Motion::none, Motion::keep_centers, Motion::clamp, Motion::sanitize}) {
    mover.move({motion, annotations.size, annotations.size, {1, 1, 1, 1}});
  }
  EXPECT_EQ(mover.size(), annotations.size);
  std::vector<uint8_t> bytes(12);
  mover.make_mask(annotations, {MaskKind::runs, 0, 5}, MaskForm::bytes,
                  reinterpret_cast<std::byte*>(bytes.data()));
  EXPECT_EQ(bytes, (std::vector<uint8_t>{0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace stoker
