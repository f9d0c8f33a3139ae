// Moved objects: fixed cases by hand, torchvision's results for lists of motions, and matrices that
// have no inverse.
#include "pipeline/annotation/object_mover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace stoker {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

using Box4 = std::array<double, 4>;
using Box8 = std::array<double, 8>;
constexpr Size kPicture{100, 60};

Annotations with_boxes(const std::vector<Box4>& boxes) {
  Annotations annotations{.size = kPicture};
  for (const Box4& box : boxes) annotations.objects.push_back({.box = box});
  return annotations;
}

Movement movement(Motion motion, std::array<double, 8> values = {}, Size after = kPicture,
                  Size before = kPicture) {
  return {motion, before, after, values};
}

// Moves objects that have no keypoints.
ObjectMover moved(const Annotations& annotations, const std::vector<Movement>& movements) {
  ObjectMover mover;
  mover.begin(annotations, 0);
  for (const Movement& each : movements) mover.move(each);
  return mover;
}

Box4 moved_box(const Box4& box, const Movement& movement) {
  return moved(with_boxes({box}), {movement}).objects()[0].box;
}

Box8 moved_corners(const Box8& corners, const Movement& movement) {
  Annotations annotations = with_boxes({{}});
  annotations.corners = {corners};
  return moved(annotations, {movement}).corners()[0];
}

Keypoint moved_point(const Keypoint& point, const std::vector<Movement>& movements) {
  Annotations annotations = with_boxes({{}});
  annotations.keypoints = {point};
  ObjectMover mover;
  mover.begin(annotations, 1);
  for (const Movement& each : movements) mover.move(each);
  return mover.keypoints(0)[0];
}

constexpr Box4 kBox{10, 20, 30, 50};

TEST(ObjectMover, CropSubtractsAndCutsOff) {
  const Movement crop = movement(Motion::crop, {15, 10, 40, 35}, {40, 35});
  EXPECT_THAT(moved_box(kBox, crop), ElementsAre(0, 10, 15, 35));
  EXPECT_THAT(moved_box({60, 20, 70, 30}, crop), ElementsAre(40, 10, 40, 20));
}

TEST(ObjectMover, ResizeScales) {
  const Movement resize = movement(Motion::resize, {}, {50, 120});
  EXPECT_THAT(moved_box(kBox, resize), ElementsAre(5, 40, 15, 100));
  // It cuts nothing off.
  EXPECT_THAT(moved_box({-10, 0, 120, 60}, resize), ElementsAre(-5, 0, 60, 120));
}

TEST(ObjectMover, FlipsMirror) {
  EXPECT_THAT(moved_box(kBox, movement(Motion::flip)), ElementsAre(70, 20, 90, 50));
  EXPECT_THAT(moved_box(kBox, movement(Motion::vertical_flip)), ElementsAre(10, 10, 30, 40));
}

TEST(ObjectMover, TurnsGoCounterclockwise) {
  EXPECT_THAT(moved_box(kBox, movement(Motion::turn, {1}, {60, 100})), ElementsAre(20, 70, 50, 90));
  EXPECT_THAT(moved_box(kBox, movement(Motion::turn, {2})), ElementsAre(70, 10, 90, 40));
  EXPECT_THAT(moved_box(kBox, movement(Motion::turn, {3}, {60, 100})), ElementsAre(10, 10, 40, 30));
}

TEST(ObjectMover, PadMovesAndCutsOff) {
  const Movement pad = movement(Motion::pad, {5, 7, 11, 13}, {116, 80});
  EXPECT_THAT(moved_box(kBox, pad), ElementsAre(15, 27, 35, 57));
  EXPECT_THAT(moved_box({-20, 0, 200, 60}, pad), ElementsAre(0, 7, 116, 67));
}

TEST(ObjectMover, AffineGoesTheOtherWayThanItsMatrix) {
  // Each pixel shows what was at half its distance from the corner, and 3 to the right.
  const Movement affine = movement(Motion::affine, {0.5, 0, 3, 0, 0.5, 0});
  EXPECT_THAT(moved_box(kBox, affine), ElementsAre(14, 40, 54, 60));
}

TEST(ObjectMover, WhatARotationMakesLargerBeginsInTheCorner) {
  // A quarter of a circle about the middle, of a picture that becomes larger than need be.
  const Movement rotation = movement(Motion::affine, {0, -1, 101, 1, 0, -1}, {62, 102});
  EXPECT_THAT(moved_box(kBox, rotation), ElementsAre(20, 70, 50, 90));
}

TEST(ObjectMover, PerspectiveTakesTheSmallestBox) {
  // The inverse of (x, y) / (1 + x / 100).
  const Movement perspective = movement(Motion::perspective, {1, 0, 0, 0, 1, 0, -0.01, 0});
  EXPECT_THAT(moved_box({0, 0, 100, 60}, perspective),
              Pointwise(DoubleNear(1e-12), Box4{0, 0, 50, 60}));
  EXPECT_THAT(moved_box({25, 0, 100, 60}, perspective),
              Pointwise(DoubleNear(1e-12), Box4{20, 0, 50, 48}));
}

TEST(ObjectMover, ClampCutsOff) {
  EXPECT_THAT(moved_box({-5, -5, 200, 30}, movement(Motion::clamp)), ElementsAre(0, 0, 100, 30));
}

TEST(ObjectMover, KeepCentersEmptiesBoxesWhoseCentreIsOutside) {
  // The centre (20, 35) must lie inside, not at a side.
  const auto kept = [](double x, double y, double width, double height) {
    return moved_box(kBox, movement(Motion::keep_centers, {x, y, width, height}));
  };
  EXPECT_EQ(kept(19, 34, 2, 2), kBox);
  EXPECT_EQ(kept(20, 34, 2, 2), Box4{});
  EXPECT_EQ(kept(18, 34, 2, 2), Box4{});
  EXPECT_EQ(kept(19, 35, 2, 2), Box4{});
  EXPECT_EQ(kept(19, 33, 2, 2), Box4{});
}

TEST(ObjectMover, SanitizeDropsObjectsWithAllThatTheyHave) {
  Annotations annotations = with_boxes({{0, 0, 5, 3},
                                        {0, 0, 6, 4},
                                        {-1, 0, 20, 20},
                                        {0, 0, 100, 60},
                                        {1, 1, 101, 60},
                                        {20, 20, 10, 10}});
  for (int i = 0; i < 6; ++i) {
    annotations.objects[static_cast<size_t>(i)].label = 10 + i;
    annotations.keypoints.push_back({double(i), 0, 2});
    annotations.keypoints.push_back({double(i), 1, 1});
  }
  ObjectMover mover;
  mover.begin(annotations, 2);
  mover.move(movement(Motion::sanitize, {4, 24}));
  ASSERT_EQ(mover.objects().size(), 2u);
  EXPECT_EQ(mover.objects()[0].label, 11);
  EXPECT_EQ(mover.objects()[0].index, 1);
  EXPECT_EQ(mover.objects()[1].label, 13);
  EXPECT_EQ(mover.objects()[1].index, 3);
  EXPECT_EQ(mover.keypoints(1)[0].x, 3);
  EXPECT_EQ(mover.keypoints(1)[1].y, 1);
}

TEST(ObjectMover, SanitizeOfRotatedBoxesCountsTheirOwnSides) {
  Annotations annotations = with_boxes({{}, {}});
  // 20 wide and 2 high, before it is turned by a quarter of a circle; and the same, reaching out.
  annotations.corners = {{10, 30, 10, 10, 12, 10, 12, 30}, {-1, 30, -1, 10, 1, 10, 1, 30}};
  EXPECT_EQ(moved(annotations, {movement(Motion::sanitize, {2, 40})}).objects().size(), 1u);
  EXPECT_EQ(moved(annotations, {movement(Motion::sanitize, {2, 41})}).objects().size(), 0u);
  EXPECT_EQ(moved(annotations, {movement(Motion::sanitize, {3, 1})}).objects().size(), 0u);
}

// Whether an object is still there after these movements, if this share of it must be.
bool is_visible(const Annotations& annotations, std::vector<Movement> movements, double share) {
  movements.push_back(
      movement(Motion::sanitize, {0, 0, share}, movements.back().after, movements.back().after));
  return !moved(annotations, movements).objects().empty();
}

bool is_visible(const Box4& box, const std::vector<Movement>& movements, double share) {
  return is_visible(with_boxes({box}), movements, share);
}

Movement crop_of(double x, double y, int width, int height, Size before = kPicture) {
  return movement(Motion::crop, {x, y, double(width), double(height)}, {width, height}, before);
}

TEST(ObjectMover, ACropLeavesAShareOfABox) {
  // A quarter of kBox, 20 x 30: its right half, and of this the lower half.
  const Movement crop = crop_of(20, 35, 60, 25);
  EXPECT_TRUE(is_visible(kBox, {crop}, 0.25));
  EXPECT_FALSE(is_visible(kBox, {crop}, 0.2501));
  EXPECT_TRUE(is_visible(kBox, {crop_of(0, 0, 30, 50)}, 1));
  EXPECT_FALSE(is_visible(kBox, {crop_of(0, 0, 29, 50)}, 1));
  // Nothing is left, but any share will do.
  EXPECT_TRUE(is_visible(kBox, {crop_of(40, 0, 60, 60)}, 0));
  EXPECT_FALSE(is_visible(kBox, {crop_of(40, 0, 60, 60)}, 0.001));
}

TEST(ObjectMover, SharesOfOneStepAfterTheOtherAreMultiplied) {
  const Movement half = crop_of(20, 0, 80, 60), resize = movement(Motion::resize, {}, {40, 120});
  // At last the box is at [0, 5] x [20, 80].
  const Movement flip = movement(Motion::flip, {}, {40, 120}, {40, 120});
  const Movement turned = movement(Motion::turn, {2}, {40, 120}, {40, 120});
  const Movement again = crop_of(0, 0, 40, 50, {40, 120});
  const std::vector<Movement> all{half, movement(Motion::resize, {}, {40, 120}, {80, 60}), flip,
                                  turned, again};
  EXPECT_TRUE(is_visible(kBox, all, 0.25));
  EXPECT_FALSE(is_visible(kBox, all, 0.2501));
  // The size of a picture is no matter.
  EXPECT_TRUE(is_visible(kBox, {resize}, 1));
}

TEST(ObjectMover, OtherStepsCutBoxesOffToo) {
  // A fifth of this box lies outside.
  const Box4 out{80, 0, 105, 60};
  // A flip leaves it there, and then there is room for it.
  EXPECT_TRUE(
      is_visible(out, {movement(Motion::flip), movement(Motion::pad, {9, 0, 0, 0}, {109, 60})}, 1));
  for (const Movement& each :
       {movement(Motion::clamp), movement(Motion::pad, {1, 1, 1, 1}, {102, 62}),
        movement(Motion::turn, {2}), movement(Motion::affine, {1, 0, 0, 0, 1, 0}),
        movement(Motion::perspective, {1, 0, 0, 0, 1, 0, 0, 0})}) {
    // A padding makes room for one pixel more.
    const double share = each.motion == Motion::pad ? 21.0 / 25 : 0.8;
    EXPECT_TRUE(is_visible(out, {each}, share)) << int(each.motion);
    EXPECT_FALSE(is_visible(out, {each}, share + 1e-6)) << int(each.motion);
  }
}

TEST(ObjectMover, NothingIsVisibleOfAnEmptyBox) {
  EXPECT_FALSE(is_visible({5, 5, 5, 9}, {movement(Motion::clamp)}, 0.001));
  const Movement elsewhere = movement(Motion::keep_centers, {50, 0, 50, 60});
  EXPECT_TRUE(is_visible(kBox, {elsewhere}, 0));
  EXPECT_FALSE(is_visible(kBox, {elsewhere}, 0.001));
  const Movement flat = movement(Motion::affine, {1, 1, 0, 1, 1, 0});
  EXPECT_FALSE(is_visible(kBox, {flat}, 0.001));
  const Box4 endless{-1e308, 0, 1e308, 1e308};
  EXPECT_FALSE(is_visible(endless, {movement(Motion::clamp)}, 0.001));
}

TEST(ObjectMover, SharesGoWithTheirObjects) {
  // Half of the last box is cut off, and then the one in the middle goes.
  ObjectMover mover;
  const auto sanitize = [&](double share) {
    mover.move(movement(Motion::sanitize, {0, 0, share}, {80, 60}, {80, 60}));
    return mover.objects().size();
  };
  mover.begin(with_boxes({{40, 0, 60, 20}, {5, 5, 5, 5}, kBox}), 0);
  mover.move(crop_of(20, 0, 80, 60));
  mover.move(movement(Motion::drop_empty));
  EXPECT_EQ(sanitize(0.5), 2u);
  // The next sample's are whole.
  mover.begin(with_boxes({kBox, kBox, kBox}), 0);
  EXPECT_EQ(sanitize(1), 3u);
  mover.move(crop_of(20, 0, 60, 60, {80, 60}));
  EXPECT_EQ(sanitize(0.51), 0u);
}

TEST(ObjectMover, ARotatedBoxIsVisibleByTheAreaOfWhatItIsCutOffTo) {
  // RotatedBoxesAreCutOffToTheSmallestOfTheirAngle has this box: 20 x 10 of 40 x 20 are left.
  const double r = std::sqrt(2.0);
  Annotations annotations = with_boxes({{}});
  annotations.corners = {{-15 * r, 5 * r, 5 * r, -15 * r, 15 * r, -5 * r, -5 * r, 15 * r}};
  // Only where there is room for its corners it is not dropped in any case.
  const Movement pad = movement(Motion::pad, {20, 20, 0, 0}, {120, 80});
  const Movement large = movement(Motion::pad, {20, 20, 0, 0}, {220, 140}, {200, 120});
  const Movement resize = movement(Motion::resize, {}, {200, 120});
  for (const std::vector<Movement>& cut :
       {std::vector{movement(Motion::clamp), pad}, std::vector{resize, large}}) {
    EXPECT_TRUE(is_visible(annotations, cut, 0.25));
    EXPECT_FALSE(is_visible(annotations, cut, 0.2501));
  }
  // Inside, but for the last bits.
  annotations.corners = {{20.1, 30.7, 30.3, 20.5, 40.5, 30.7, 30.3, 40.9}};
  EXPECT_TRUE(is_visible(annotations, {movement(Motion::clamp), movement(Motion::turn, {2})}, 1));
  const Movement elsewhere = movement(Motion::keep_centers, {50, 0, 50, 60});
  EXPECT_FALSE(is_visible(annotations, {elsewhere}, 0.001));
}

// A plain twin for upright boxes: where its part is that is still seen, and how much of its area
// each step has left.
struct SeenBox {
  Box4 box;
  double share = 1;

  void cut_off(Size picture) {
    const double before = (box[2] - box[0]) * (box[3] - box[1]);
    const double left = std::max(box[0], 0.0), right = std::min(box[2], double(picture.width));
    const double top = std::max(box[1], 0.0), bottom = std::min(box[3], double(picture.height));
    share *= right > left && bottom > top ? (right - left) * (bottom - top) / before : 0;
    box = {left, top, std::max(left, right), std::max(top, bottom)};
  }
  void move(const Movement& step) {
    const auto [a, b, c, d, e, f, g, h] = step.values;
    const double width = step.before.width;
    const double x = double(step.after.width) / width;
    const double y = double(step.after.height) / step.before.height;
    if (share == 0) return;
    if (step.motion == Motion::crop) box = {box[0] - a, box[1] - b, box[2] - a, box[3] - b};
    if (step.motion == Motion::pad) box = {box[0] + a, box[1] + b, box[2] + a, box[3] + b};
    if (step.motion == Motion::flip) box = {width - box[2], box[1], width - box[0], box[3]};
    if (step.motion == Motion::resize) box = {box[0] * x, box[1] * y, box[2] * x, box[3] * y};
    if (step.motion == Motion::crop || step.motion == Motion::pad) cut_off(step.after);
  }
};

Movement any_movement(Size before, std::mt19937& random) {
  const auto upto = [&](int most) { return static_cast<int>(random() % (unsigned(most) + 1)); };
  switch (random() % 4) {
    case 0: {
      const int x = upto(before.width / 3), y = upto(before.height / 3);
      return crop_of(x, y, before.width - x - upto(before.width / 3),
                     before.height - y - upto(before.height / 3), before);
    }
    case 1: {
      const int x = upto(9), y = upto(9), right = upto(9), bottom = upto(9);
      return movement(Motion::pad, {double(x), double(y), double(right), double(bottom)},
                      {before.width + x + right, before.height + y + bottom}, before);
    }
    case 2:
      return movement(Motion::resize, {}, {20 + upto(200), 20 + upto(200)}, before);
    default:
      return movement(Motion::flip, {}, before, before);
  }
}

TEST(ObjectMover, SharesAreThoseOfThePlainTwin) {
  std::mt19937 random(5);
  const auto upto = [&](double most) {
    return std::uniform_real_distribution<double>(0, most)(random);
  };
  int kept = 0, dropped = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const double left = upto(90), top = upto(50);
    // Some reach out of the picture from the beginning.
    const Box4 box{left - 5, top - 5, left + 1 + upto(40), top + 1 + upto(30)};
    Annotations turned = with_boxes({box});
    turned.corners = {{box[0], box[1], box[2], box[1], box[2], box[3], box[0], box[3]}};
    std::vector<Movement> movements{crop_of(0, 0, 100, 60)};
    SeenBox twin{box};
    twin.move(movements[0]);
    for (int step = 0; step < 5; ++step) {
      movements.push_back(any_movement(movements.back().after, random));
      twin.move(movements.back());
    }
    // Sanitizing drops what reaches out by a rounding of the last resize.
    const Size last = movements.back().after;
    movements.push_back(movement(Motion::clamp, {}, last, last));
    const double share = trial % 2 == 0 ? upto(1) : twin.share + (trial % 4 == 1 ? 1e-6 : -1e-6);
    if (share <= 0 || share > 1) continue;
    const bool expected = twin.share >= share;
    ASSERT_EQ(is_visible(box, movements, share), expected) << trial << ": " << twin.share;
    // The same box as a rotated one that is not turned.
    ASSERT_EQ(is_visible(turned, movements, share), expected) << trial << ": " << twin.share;
    ++(expected ? kept : dropped);
  }
  EXPECT_GT(kept, 500);
  EXPECT_GT(dropped, 500);
}

TEST(ObjectMover, RotatedBoxesKeepTheirFirstCorner) {
  const Box8 diamond{20, 30, 30, 20, 40, 30, 30, 40};
  EXPECT_THAT(moved_corners(diamond, movement(Motion::flip)),
              ElementsAre(70, 20, 80, 30, 70, 40, 60, 30));
  EXPECT_THAT(moved_corners(diamond, movement(Motion::turn, {2})),
              Pointwise(DoubleNear(1e-12), Box8{80, 30, 70, 40, 60, 30, 70, 20}));
}

// A box of 40 x 20 about the corner of the picture, turned by an eighth of a circle: the smallest
// of this angle that has all of its part inside, which is cut off at (14.1, 0) and (0, 14.1).
TEST(ObjectMover, RotatedBoxesAreCutOffToTheSmallestOfTheirAngle) {
  const double r = std::sqrt(2.0);
  const Box8 box{-15 * r, 5 * r, 5 * r, -15 * r, 15 * r, -5 * r, -5 * r, 15 * r};
  EXPECT_THAT(
      moved_corners(box, movement(Motion::clamp)),
      Pointwise(DoubleNear(1e-9), Box8{-5 * r, 5 * r, 5 * r, -5 * r, 10 * r, 0, 0, 10 * r}));
}

TEST(ObjectMover, TheBoxOfARotatedBoxIsTheSmallestUprightOne) {
  Annotations annotations = with_boxes({{}});
  annotations.corners = {{20, 30, 30, 20, 40, 30, 30, 40}};
  const ObjectMover mover =
      moved(annotations, {movement(Motion::crop, {10, 10, 50, 40}, {50, 40})});
  EXPECT_THAT(mover.objects()[0].box, Pointwise(DoubleNear(1e-12), Box4{10, 10, 30, 30}));
}

TEST(ObjectMover, KeypointsAreMirroredAsPixels) {
  const Keypoint flipped = moved_point({10, 20, 2}, {movement(Motion::flip)});
  EXPECT_EQ(flipped.x, 89);
  EXPECT_EQ(flipped.y, 20);
  EXPECT_EQ(moved_point({10, 20, 2}, {movement(Motion::vertical_flip)}).y, 39);
  EXPECT_EQ(moved_point({99.5, 20, 2}, {movement(Motion::flip)}).visibility, 2);
}

TEST(ObjectMover, APointThatLeftThePictureIsNotVisibleAnyMore) {
  const Movement crop = movement(Motion::crop, {15, 10, 40, 35}, {40, 35});
  EXPECT_EQ(moved_point({15, 10, 2}, {crop}).visibility, 2);
  EXPECT_EQ(moved_point({54, 44, 1}, {crop}).visibility, 1);
  EXPECT_EQ(moved_point({55, 44, 2}, {crop}).visibility, 0);
  EXPECT_EQ(moved_point({14, 20, 2}, {crop}).visibility, 0);
  EXPECT_EQ(moved_point({14, 20, 2}, {crop}).x, -1);
  EXPECT_EQ(moved_point({20, 45, 2}, {crop}).visibility, 0);
  // Nor when there is room for it again.
  const Movement pad = movement(Motion::pad, {9, 9, 9, 9}, {58, 53}, {40, 35});
  EXPECT_EQ(moved_point({14, 20, 2}, {crop, pad}).visibility, 0);
}

TEST(ObjectMover, AMatrixWithoutInverseEmptiesBoxesAndLosesPoints) {
  for (const Movement& flat : {movement(Motion::affine, {1, 1, 0, 1, 1, 0}),
                               movement(Motion::perspective, {1, 2, 3, 2, 4, 6, 0, 0})}) {
    EXPECT_THAT(moved_box(kBox, flat), ElementsAre(0, 0, 0, 0));
    const Box8 corners = moved_corners({20, 30, 30, 20, 40, 30, 30, 40}, flat);
    EXPECT_EQ(std::count(corners.begin(), corners.end(), corners[0]), 4) << "a point";
    EXPECT_EQ(moved_point({10, 20, 2}, {flat}).visibility, 0);
  }
}

TEST(ObjectMover, APointAtTheHorizonIsOutside) {
  // (x, y) / (1 - x / 50), which takes points with x = 50 to infinity.
  const Movement horizon = movement(Motion::perspective, {1, 0, 0, 0, 1, 0, 0.02, 0});
  const Keypoint lost = moved_point({50, 20, 2}, {horizon});
  EXPECT_EQ(lost.x, -1);
  EXPECT_EQ(lost.y, -1);
  EXPECT_EQ(lost.visibility, 0);
  const Box4 box = moved_box({50, 0, 60, 10}, horizon);
  for (const double number : box) EXPECT_TRUE(std::isfinite(number));
}

TEST(ObjectMover, NothingIsLeftThatIsNoNumber) {
  const Box8 huge{1e308, -1e308, -1e308, -1e308, -1e308, 1e308, 1e308, 1e308};
  for (const Motion motion : {Motion::clamp, Motion::resize, Motion::turn, Motion::pad}) {
    const Box8 corners = moved_corners(huge, movement(motion, {1}, {60, 100}));
    for (const double number : corners) EXPECT_TRUE(std::isfinite(number)) << int(motion);
  }
}

TEST(ObjectMover, ObjectsOfTheNextSampleReplaceThese) {
  ObjectMover mover;
  mover.begin(with_boxes({kBox, kBox}), 0);
  mover.move(movement(Motion::flip));
  mover.begin(with_boxes({kBox}), 0);
  ASSERT_EQ(mover.objects().size(), 1u);
  EXPECT_EQ(mover.objects()[0].box, kBox);
}

// A case of tests/golden/annotation/objects.txt; make_object_golden.py says what stands there.
struct GoldenCase {
  std::string kind;
  Size size;
  std::vector<std::vector<double>> objects;
  std::vector<Movement> movements;
  std::map<int, std::vector<double>> moved;  // by place
};

std::vector<double> rest_of(std::istream& line) {
  return {std::istream_iterator<double>(line), {}};
}

Movement read_movement(std::istream& line, Size before) {
  static const std::map<std::string, Motion> kMotions{
      {"crop", Motion::crop},        {"resize", Motion::resize},
      {"flip", Motion::flip},        {"vertical_flip", Motion::vertical_flip},
      {"turn", Motion::turn},        {"pad", Motion::pad},
      {"affine", Motion::affine},    {"perspective", Motion::perspective},
      {"clamp", Motion::clamp},      {"keep_centers", Motion::keep_centers},
      {"sanitize", Motion::sanitize}};
  std::string name;
  Movement movement;
  movement.before = before;
  line >> name >> movement.after.width >> movement.after.height;
  movement.motion = kMotions.at(name);
  std::ranges::copy(rest_of(line), movement.values.begin());
  return movement;
}

std::vector<GoldenCase> read_golden() {
  std::ifstream file(STOKER_GOLDEN_DIR "/annotation/objects.txt");
  std::vector<GoldenCase> cases;
  std::string word;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    line >> word;
    if (word == "case") {
      GoldenCase& next = cases.emplace_back();
      line >> next.kind >> next.size.width >> next.size.height;
      continue;
    }
    GoldenCase& last = cases.back();
    if (word == "object") last.objects.push_back(rest_of(line));
    if (word == "move") {
      const Size before = last.movements.empty() ? last.size : last.movements.back().after;
      last.movements.push_back(read_movement(line, before));
    }
    if (word == "moved") {
      int place = 0;
      line >> place;
      last.moved[place] = rest_of(line);
    }
  }
  return cases;
}

Annotations annotations_of(const GoldenCase& golden) {
  Annotations annotations{.size = golden.size};
  for (const std::vector<double>& numbers : golden.objects) {
    AnnotatedObject& object = annotations.objects.emplace_back();
    if (golden.kind == "boxes") std::copy_n(numbers.begin(), 4, object.box.begin());
    if (golden.kind == "rotated") {
      std::copy_n(numbers.begin(), 8, annotations.corners.emplace_back().begin());
    }
    if (golden.kind == "keypoints") {
      for (size_t i = 0; i < numbers.size(); i += 2) {
        annotations.keypoints.push_back({numbers[i], numbers[i + 1], 2});
      }
    }
  }
  return annotations;
}

std::vector<double> moved_numbers(const ObjectMover& mover, size_t place, const std::string& kind) {
  if (kind == "boxes") {
    const Box4& box = mover.objects()[place].box;
    return {box.begin(), box.end()};
  }
  if (kind == "rotated") {
    const Box8& corners = mover.corners()[place];
    return {corners.begin(), corners.end()};
  }
  std::vector<double> numbers;
  for (const Keypoint& point : mover.keypoints(place)) {
    numbers.insert(numbers.end(), {point.x, point.y});
  }
  return numbers;
}

TEST(ObjectMover, GivesWhatTorchvisionGives) {
  const std::vector<GoldenCase> cases = read_golden();
  ASSERT_GE(cases.size(), 200u);
  ObjectMover mover;  // one for all
  double largest = 0;
  for (size_t number = 0; number < cases.size(); ++number) {
    const GoldenCase& golden = cases[number];
    const Annotations annotations = annotations_of(golden);
    mover.begin(annotations, golden.kind == "keypoints" ? 3 : 0);
    for (const Movement& each : golden.movements) mover.move(each);
    ASSERT_EQ(mover.objects().size(), golden.moved.size()) << "case " << number;
    for (size_t place = 0; place < mover.objects().size(); ++place) {
      const auto found = golden.moved.find(mover.objects()[place].index);
      ASSERT_NE(found, golden.moved.end()) << "case " << number;
      const std::vector<double> numbers = moved_numbers(mover, place, golden.kind);
      EXPECT_THAT(numbers, Pointwise(DoubleNear(1e-4), found->second)) << "case " << number;
      for (size_t i = 0; i < numbers.size(); ++i) {
        largest = std::max(largest, std::abs(numbers[i] - found->second[i]));
      }
    }
  }
  std::printf("the largest error is %.2g pixels\n", largest);
}

}  // namespace
}  // namespace stoker
