// Annotations of several pictures on one canvas: masks are those of a plain twin that paints bytes.
#include "pipeline/annotation/merged_annotations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "pipeline/annotation/run_lengths.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;

using MaskBytes = std::vector<uint8_t>;  // (height, width)

std::vector<uint32_t> runs_of(const MaskBytes& mask, Size size) {
  std::vector<uint32_t> runs = {0};
  uint8_t now = 0;
  for (int x = 0; x < size.width; ++x) {
    for (int y = 0; y < size.height; ++y) {
      const uint8_t pixel = mask[static_cast<size_t>(y * size.width + x)];
      if (pixel != now) runs.push_back(0);
      now = pixel;
      ++runs.back();
    }
  }
  return runs;
}

MaskBytes bytes_of(std::span<const uint32_t> runs, Size size) {
  MaskBytes mask(static_cast<size_t>(size.width * size.height));
  int at = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (uint32_t k = 0; k < runs[i]; ++k, ++at) {
      mask[static_cast<size_t>(at % size.height * size.width + at / size.height)] = i % 2;
    }
  }
  EXPECT_EQ(at, size.width * size.height);
  return mask;
}

// A picture whose objects have these masks, and no motion.
struct MaskedPicture {
  MaskedPicture(Size size, const std::vector<MaskBytes>& masks) {
    annotations.size = size;
    for (const MaskBytes& mask : masks) {
      const std::vector<uint32_t> runs = runs_of(mask, size);
      const auto index = static_cast<int32_t>(annotations.objects.size());
      annotations.objects.push_back(
          {.box = {1, 2, 3, 4},
           .id = 70 + index,
           .mask = {MaskKind::runs, static_cast<uint32_t>(annotations.runs.size()),
                    static_cast<uint32_t>(runs.size())},
           .index = index});
      annotations.runs.insert(annotations.runs.end(), runs.begin(), runs.end());
    }
    objects.begin(annotations, 0);
    mover.begin(size);
  }
  MovedAnnotations moved() { return {annotations, objects, &mover}; }

  Annotations annotations;
  ObjectMover objects;
  MaskMover mover;
};

MaskBytes mask_of(const Annotations& merged, size_t object) {
  const MaskShape& shape = merged.objects.at(object).mask;
  EXPECT_EQ(shape.kind, MaskKind::runs);
  const auto runs = std::span(merged.runs).subspan(shape.first, shape.count);
  EXPECT_EQ(check_runs(runs, merged.size), "");
  return bytes_of(runs, merged.size);
}

MaskBytes random_mask(std::mt19937& random, Size size) {
  MaskBytes mask(static_cast<size_t>(size.width * size.height));
  const int share = static_cast<int>(random() % 4);  // of full, some, few and no pixels
  for (uint8_t& pixel : mask) pixel = share == 0 || (share < 3 && random() % (4u * share) == 0);
  return mask;
}

TEST(MergedAnnotations, MasksLieWhereTheirPictureLies) {
  std::mt19937 random(3);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  MergedAnnotations merger;
  Annotations merged;
  for (int round = 0; round < 500; ++round) {
    const Size canvas{1 + below(30), 1 + below(20)};
    const Size size{1 + below(canvas.width), 1 + below(canvas.height)};
    const int x = below(canvas.width - size.width + 1), y = below(canvas.height - size.height + 1);
    const std::vector<MaskBytes> masks = {random_mask(random, size), random_mask(random, size)};
    MaskedPicture picture(size, masks);
    merger.begin(canvas, merged);
    merger.add(picture.moved(), x, y);
    ASSERT_EQ(merged.objects.size(), 2u);
    for (size_t i = 0; i < masks.size(); ++i) {
      MaskBytes expected(static_cast<size_t>(canvas.width * canvas.height));
      for (int row = 0; row < size.height; ++row) {
        for (int column = 0; column < size.width; ++column) {
          expected[static_cast<size_t>((y + row) * canvas.width + x + column)] =
              masks[i][static_cast<size_t>(row * size.width + column)];
        }
      }
      ASSERT_EQ(mask_of(merged, i), expected) << round;
      EXPECT_THAT(merged.objects[i].box, ElementsAre(1 + x, 2 + y, 3 + x, 4 + y));
    }
  }
}

TEST(MergedAnnotations, PointsAndCornersMoveAlong) {
  Annotations annotations;
  annotations.objects.resize(1);
  annotations.corners = {{1, 2, 3, 4, 5, 6, 7, 8}};
  annotations.keypoints = {{1.5, 2.5, 2}, {3, 4, 0}};
  ObjectMover objects;
  objects.begin(annotations, 2);
  MergedAnnotations merger;
  Annotations merged;
  merger.begin({50, 40}, merged);
  merger.add({annotations, objects}, 10, 20);
  EXPECT_THAT(merged.corners, ElementsAre(ElementsAre(11, 22, 13, 24, 15, 26, 17, 28)));
  ASSERT_EQ(merged.keypoints.size(), 2u);
  EXPECT_EQ(merged.keypoints[0].x, 11.5);
  EXPECT_EQ(merged.keypoints[0].y, 22.5);
  EXPECT_EQ(merged.keypoints[0].visibility, 2);
  EXPECT_EQ(merged.keypoints[1].visibility, 0);
  EXPECT_EQ(merged.size, (Size{50, 40}));
}

TEST(MergedAnnotations, WhoIsCoveredEndsThere) {
  const Size size{11, 3};                                   // a row has more than a byte
  const MaskBytes left = {1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0,  //
                          1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0,  //
                          0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  const MaskBytes inside = {0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,  //
                            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  //
                            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  const MaskBytes apart = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  //
                           0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  //
                           0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  const MaskBytes above = {0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1,  //
                           0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0,  //
                           0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  MaskedPicture own(size, {left, inside, apart}), other(size, {apart, above});
  MergedAnnotations merger;
  Annotations merged;
  std::vector<std::byte> cover;
  const std::vector<int32_t> chosen = {1};
  merger.begin(size, merged);
  merger.cover(other.moved(), chosen, cover);
  merger.add(own.moved(), 0, 0);
  merger.uncover();
  merger.add(other.moved(), 0, 0, &chosen);
  ASSERT_EQ(merged.objects.size(), 3u);
  EXPECT_THAT(mask_of(merged, 0), ElementsAre(1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,  //
                                              1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,  //
                                              0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(merged.objects[0].box, ElementsAre(0, 0, 2, 2));
  EXPECT_EQ(merged.objects[0].visible, 1);  // the data's box was no larger
  EXPECT_EQ(mask_of(merged, 1), apart);
  EXPECT_THAT(merged.objects[1].box, ElementsAre(1, 2, 3, 4));  // as the data have it
  EXPECT_EQ(mask_of(merged, 2), above);
  EXPECT_EQ(merged.objects[2].id, 71);
  EXPECT_EQ(cover.size(), 6u);
}

TEST(MergedAnnotations, LabelsLieWhereTheirPictureLies) {
  LabelImage canvas, picture;
  begin_labels({4, 3}, 4, 70000, canvas);
  begin_labels({2, 2}, 4, 5, picture);
  place_labels(picture, 1, 1, canvas);
  const auto* labels = reinterpret_cast<const int32_t*>(canvas.pixels.data());
  EXPECT_THAT(std::vector<int32_t>(labels, labels + 12),
              ElementsAre(70000, 70000, 70000, 70000, 70000, 5, 5, 70000, 70000, 5, 5, 70000));
}

}  // namespace
}  // namespace stoker
