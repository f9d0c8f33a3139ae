#include "pipeline/source/annotated/annotation_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "pipeline/files/durable_file.h"
#include "pipeline/source/annotated/annotation_code.h"
#include "tests/support/same_annotations.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

constexpr char kSetKey[] = "of this test";

AnnotationInfo every_kind() {
  return {.objects = true,
          .rotated = true,
          .masks = true,
          .keypoints = 2,
          .class_names = {"", "cat", "dog"},
          .keypoint_names = {"nose", "tail"}};
}

// A number as data have them: mostly hundredths, sometimes any.
double drawn_number(std::mt19937& random) {
  const int value = std::uniform_int_distribution(-5000, 70000)(random);
  return value % 7 == 0 ? value / 3.0 : value / 100.0;
}

void add_drawn_mask(std::mt19937& random, Annotations& out) {
  MaskShape& mask = out.objects.back().mask;
  const unsigned kind = random() % 3;
  mask.count = kind == 0 ? 0 : 1 + random() % 3;
  if (kind == 1) {
    mask.kind = MaskKind::polygons;
    mask.first = static_cast<uint32_t>(out.polygons.size());
    for (uint32_t i = 0; i < mask.count; ++i) {
      const uint32_t points = 3 + random() % 5;
      out.polygons.push_back({static_cast<uint32_t>(out.points.size()), points});
      for (uint32_t k = 0; k < points; ++k) {
        out.points.push_back({drawn_number(random), drawn_number(random)});
      }
    }
  } else if (kind == 2) {
    mask.kind = MaskKind::runs;
    mask.first = static_cast<uint32_t>(out.runs.size());
    const auto pixels = static_cast<uint32_t>(out.size.width * out.size.height);
    mask.count = 2;
    out.runs.push_back(random() % pixels);
    out.runs.push_back(pixels - out.runs.back());
  }
}

Annotations drawn_annotations(std::mt19937& random) {
  Annotations out;
  out.size = {640, 480};
  const unsigned objects = random() % 6;
  for (unsigned i = 0; i < objects; ++i) {
    AnnotatedObject& object = out.objects.emplace_back();
    const double x = drawn_number(random), y = drawn_number(random);
    object.box = {x, y, x + std::abs(drawn_number(random)), y + std::abs(drawn_number(random))};
    object.label = 1 + random() % 2;
    object.id = static_cast<int64_t>(random()) << 30;
    object.area = std::abs(drawn_number(random));
    object.is_crowd = random() % 2 != 0;
    object.index = static_cast<int32_t>(i);
    for (double& corner : out.corners.emplace_back()) corner = drawn_number(random);
    for (int k = 0; k < 2; ++k) {
      out.keypoints.push_back({drawn_number(random), drawn_number(random), 2});
    }
    add_drawn_mask(random, out);
  }
  return out;
}

struct DrawnSet {
  std::vector<Annotations> pictures;
  AnnotationSetBuilder builder{every_kind()};
};

void draw_set(int pictures, DrawnSet& set) {
  std::mt19937 random(7);
  for (int i = 0; i < pictures; ++i) {
    set.pictures.push_back(drawn_annotations(random));
    set.builder.add("a/" + std::to_string(i) + ".jpg", set.pictures.back());
  }
}

void expect_set(const DrawnSet& expected, const AnnotationSet& set) {
  ASSERT_EQ(set.pictures(), std::ssize(expected.pictures));
  Annotations found;
  for (int64_t i = 0; i < set.pictures(); ++i) {
    const std::string name = "a/" + std::to_string(i) + ".jpg";
    EXPECT_EQ(set.name(i), name);
    EXPECT_EQ(set.find(name), i);
    EXPECT_EQ(set.read(i, found), "");
    EXPECT_EQ(describe(found), describe(expected.pictures[static_cast<size_t>(i)])) << name;
  }
  EXPECT_EQ(set.find("a/no.jpg"), -1);
  EXPECT_EQ(set.find(""), -1);
}

// A set with one picture, "cat.jpg", that has one object.
SharedAnnotations set_of(AnnotationInfo info, const Annotations& annotations,
                         const std::string& problem = "") {
  AnnotationSetBuilder builder(std::move(info));
  builder.add("cat.jpg", annotations, problem);
  return builder.finish();
}

Annotations one_box(std::array<double, 4> box = {1, 2, 3, 4}) {
  Annotations one;
  one.size = {6, 5};
  one.objects.push_back({.box = box, .label = 1, .id = 17, .area = 2});
  return one;
}

std::string problem_of_set(const Annotations& annotations,
                           const AnnotationInfo& info = {.objects = true}) {
  Annotations found;
  return set_of(info, annotations)->read(0, found);
}

TEST(AnnotationSet, GivesBackWhatWasAdded) {
  DrawnSet set;
  draw_set(300, set);
  expect_set(set, *set.builder.finish());
}

TEST(AnnotationSet, IsTheSameFromAFile) {
  const TempFolder folder;
  const std::string path = folder.path() + "/deep/set.bin";
  DrawnSet set;
  draw_set(300, set);
  const SharedAnnotations made = set.builder.finish_in(path, kSetKey);
  expect_set(set, *made);
  const SharedAnnotations kept = open_annotation_set(path, kSetKey);
  ASSERT_NE(kept, nullptr);
  expect_set(set, *kept);
  DrawnSet again;
  draw_set(300, again);
  EXPECT_EQ(kept->info(), again.builder.finish()->info());
  EXPECT_EQ(open_annotation_set(path, "of another"), nullptr);
  EXPECT_EQ(open_annotation_set(folder.path() + "/none.bin", kSetKey), nullptr);
}

TEST(AnnotationSet, StaysInMemoryWhereItsFileCannotBeWritten) {
  const TempFolder folder;
  folder.write("file");
  DrawnSet set;
  draw_set(3, set);
  expect_set(set, *set.builder.finish_in(folder.path() + "/file/set.bin", kSetKey));
}

TEST(AnnotationSet, HasADigestOfEverything) {
  const uint64_t digest = set_of({.objects = true}, one_box())->info().digest;
  EXPECT_EQ(set_of({.objects = true}, one_box())->info().digest, digest);
  EXPECT_NE(set_of({.objects = true}, one_box({1, 2, 3, 4.01}))->info().digest, digest);
  EXPECT_NE(set_of({.objects = true, .class_names = {"", "x"}}, one_box())->info().digest, digest);
  EXPECT_NE(set_of({.objects = true}, one_box(), "bad")->info().digest, digest);
}

TEST(AnnotationSet, RefusesTwoPicturesOfOneName) {
  AnnotationSetBuilder builder({.objects = true});
  builder.add("a.jpg", one_box());
  EXPECT_EQ(message_of([&] { builder.add("a.jpg", one_box()); }),
            "two pictures have the name a.jpg");
}

TEST(AnnotationSet, RefusesNamesWithANul) {
  const std::string name("a\0b", 3);
  EXPECT_EQ(message_of([&] { AnnotationSetBuilder({.objects = true, .class_names = {name}}); }),
            "the name a\\x00b has a NUL");
}

TEST(AnnotationSet, SaysWhatIsWrong) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(problem_of_set(one_box()), "");
  EXPECT_EQ(problem_of_set(one_box({1, 2, 1, 2})), "");
  EXPECT_EQ(problem_of_set(one_box({-5, -5, 700, 800})), "");
  EXPECT_EQ(problem_of_set(one_box({3, 2, 1.5, 4})),
            "object 0 (id 17): the box has a negative width: (3, 2, 1.5, 4)");
  EXPECT_EQ(problem_of_set(one_box({1, 4, 3, 2})),
            "object 0 (id 17): the box has a negative height: (1, 4, 3, 2)");
  EXPECT_EQ(problem_of_set(one_box({1, kNan, 3, 4})),
            "object 0 (id 17): the box has a number that is no coordinate: (1, nan, 3, 4)");
  EXPECT_EQ(problem_of_set(one_box(), {.objects = true, .class_names = {"cat"}}),
            "object 0 (id 17): the class is 1, which is none of the data's classes");
  EXPECT_EQ(problem_of_set(one_box(), {.objects = true, .class_names = {"cat", "", "dog"}}),
            "object 0 (id 17): the class is 1, which is none of the data's classes");
  Annotations broken = one_box();
  broken.objects[0].label = -1;
  EXPECT_EQ(problem_of_set(broken), "object 0 (id 17): the class is -1");
  broken = one_box();
  broken.objects[0].area = -0.5;
  EXPECT_EQ(problem_of_set(broken), "object 0 (id 17): the area is -0.5");
  broken = one_box();
  broken.size.height = -1;
  EXPECT_EQ(problem_of_set(broken), "the picture's size is 6 x -1");
}

TEST(AnnotationSet, SaysWhatIsWrongWithShapes) {
  Annotations broken = one_box();
  broken.objects[0].mask = {MaskKind::polygons, 0, 1};
  broken.points = {{1, 2}, {3, 4}};
  broken.polygons = {{0, 2}};
  EXPECT_EQ(problem_of_set(broken), "object 0 (id 17): a polygon of 2 points, must be 3 or more");
  broken.points = {{1, 2}, {3, 4}, {5, 1e9}};
  broken.polygons = {{0, 3}};
  EXPECT_EQ(problem_of_set(broken),
            "object 0 (id 17): a polygon has a point that is none: (5, 1e+09)");
  broken = one_box();
  broken.keypoints = {{1, 2, std::numeric_limits<double>::infinity()}};
  EXPECT_EQ(problem_of_set(broken, {.objects = true, .keypoints = 1}),
            "object 0 (id 17): a keypoint has a number that is none: (1, 2, inf)");
  broken.corners = {{1, 2, 3, 4, 5, 6, 7, -1e7}};
  EXPECT_EQ(problem_of_set(broken, {.objects = true, .rotated = true}),
            "object 0 (id 17): the rotated box has a number that is no coordinate: "
            "(1, 2, 3, 4, 5, 6, 7, -1e+07)");
}

TEST(AnnotationSet, KeepsAProblemWithItsPicture) {
  Annotations found;
  EXPECT_EQ(set_of({.objects = true}, one_box(), "object 5 comes twice")->read(0, found),
            "object 5 comes twice");
}

TEST(AnnotationSet, ReadsLabelFiles) {
  const TempFolder folder;
  folder.write("masks/a.png", "PNG");
  AnnotationSetBuilder builder({.label_image = true}, folder.path() + "/masks");
  const Annotations none;
  builder.add({.name = "a.jpg", .annotations = &none, .label_file = "a.png"});
  builder.add({.name = "b.jpg", .annotations = &none, .label_file = "b.png"});
  const SharedAnnotations set = builder.finish();
  Annotations found;
  EXPECT_EQ(set->read(0, found), "");
  EXPECT_EQ(std::string(found.label_file.begin(), found.label_file.end()), "PNG");
  const std::string problem = set->read(1, found);
  EXPECT_NE(problem.find(folder.path() + "/masks/b.png"), std::string::npos) << problem;
  EXPECT_TRUE(found.label_file.empty());
}

// Wherever a byte is damaged, the set is not opened, or says so for the pictures that it touches.
TEST(AnnotationSet, FindsDamage) {
  const TempFolder folder;
  const std::string path = folder.path() + "/set.bin";
  DrawnSet set;
  draw_set(6, set);
  set.builder.finish_in(path, kSetKey);
  const std::string whole = read_whole_file(path);
  int opened = 0;
  Annotations found;
  for (int64_t at = 0; at < std::ssize(whole); ++at) {
    damage_byte(path, at);
    if (const SharedAnnotations kept = open_annotation_set(path, kSetKey)) {
      ++opened;
      int damaged = 0;
      for (int64_t i = 0; i < kept->pictures(); ++i) {
        const std::string problem = kept->read(i, found);
        const bool is_damaged = problem == "the kept annotations are damaged; delete " + path;
        EXPECT_EQ(kept->size(i), is_damaged ? Size{} : found.size);
        damaged += is_damaged;
      }
      EXPECT_EQ(damaged, 1) << at;
    }
    damage_byte(path, at);
  }
  EXPECT_EQ(read_whole_file(path), whole);
  EXPECT_GT(opened, 100);
}

TEST(AnnotationCode, KeepsEveryNumber) {
  const std::vector<double> numbers = {0,
                                       1,
                                       -0.01,
                                       123.45,
                                       1e14,
                                       -0.0,
                                       1e-3,
                                       1.0 / 3,
                                       1e300,
                                       4503599627370497.5,
                                       0.07,
                                       -7,
                                       std::numeric_limits<double>::infinity()};
  std::string bytes;
  CodeWriter out(bytes);
  int64_t last = 0;
  for (const double number : numbers) out.put_number(number, last);
  CodeReader in(bytes);
  last = 0;
  for (const double number : numbers) {
    const double found = in.get_number(last);
    EXPECT_EQ(found, number);
    EXPECT_EQ(std::signbit(found), std::signbit(number));
  }
  EXPECT_TRUE(in.ok() && in.at_end());
}

TEST(AnnotationCode, RefusesAKindOfMaskThatIsNone) {
  const std::string bytes(16, '\6');
  CodeReader in(bytes);
  Annotations to;
  get_object({.objects = true}, in, to);
  EXPECT_FALSE(in.ok());
  EXPECT_TRUE(to.objects.empty());
}

TEST(AnnotationCode, EndsWhereItsBytesEnd) {
  Annotations from = one_box();
  from.objects[0].mask = {MaskKind::runs, 0, 2};
  from.runs = {10, 20};
  const AnnotationInfo info{.objects = true, .masks = true};
  std::string bytes;
  CodeWriter out(bytes);
  put_object(info, from, 0, out);
  for (size_t length = 0; length < bytes.size(); ++length) {
    CodeReader in(std::string_view(bytes).substr(0, length));
    Annotations to;
    get_object(info, in, to);
    EXPECT_FALSE(in.ok()) << length;
  }
}

}  // namespace
}  // namespace stoker
