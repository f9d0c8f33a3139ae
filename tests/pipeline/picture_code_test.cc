#include "pipeline/source/annotated/picture_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/same_annotations.h"
#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

const AnnotationInfo kCodeKinds{
    .objects = true, .masks = true, .keypoints = 1, .keypoint_names = {"nose"}};

Annotations coded_picture() {
  Annotations picture;
  picture.picture_id = 1 << 20;
  picture.size = {40, 30};
  picture.points = {{1, 2}, {30.25, 4}, {1 / 3.0, 20}};
  picture.polygons = {{0, 3}};
  picture.runs = {200, 1000};
  picture.keypoints = {{5, 6, 2}, {-7.5, 8, 0}};
  picture.objects = {{.box = {1, 2, 30.25, 20},
                      .label = 3,
                      .id = 70,
                      .area = 99.5,
                      .mask = {MaskKind::polygons, 0, 1}},
                     {.box = {0, 0, 1, 1},
                      .id = -1,
                      .is_crowd = true,
                      .mask = {MaskKind::runs, 0, 2},
                      .index = 1}};
  return picture;
}

std::string coded(const PictureAnnotations& picture) {
  std::string bytes;
  append_picture(kCodeKinds, picture, bytes);
  return bytes;
}

TEST(PictureCode, ComesBack) {
  const Annotations picture = coded_picture();
  Annotations read;
  EXPECT_EQ(read_picture(kCodeKinds, coded({.name = "a", .annotations = &picture}), "", read), "");
  EXPECT_EQ(describe(read), describe(picture));
  EXPECT_EQ(read.picture_id, picture.picture_id);
  EXPECT_TRUE(read.label_file.empty());
}

TEST(PictureCode, OtherBytesAreNone) {
  const Annotations picture = coded_picture();
  const std::string bytes = coded({.name = "a", .annotations = &picture});
  Annotations read;
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(read_picture(kCodeKinds, std::string_view(bytes).substr(0, size), "", read),
              std::nullopt);
    EXPECT_TRUE(read.objects.empty());
  }
  EXPECT_EQ(read_picture(kCodeKinds, bytes + "x", "", read), std::nullopt);
}

TEST(PictureCode, ProblemsAreSaid) {
  Annotations picture = coded_picture();
  Annotations read;
  EXPECT_EQ(read_picture(kCodeKinds,
                         coded({.name = "a", .annotations = &picture, .problem = "no such line"}),
                         "", read),
            "no such line");
  picture.objects[1].box = {5, 5, 1, 9};
  EXPECT_EQ(read_picture(kCodeKinds, coded({.name = "a", .annotations = &picture}), "", read),
            "object 1 (id -1): the box has a negative width: (5, 5, 1, 9)");
}

TEST(PictureCode, LabelFilesAreBelowTheRoot) {
  const TempFolder folder;
  const std::string whole = folder.write("1.png", "pixels");
  const Annotations picture = coded_picture();
  Annotations read;
  const std::string below = coded({.name = "a", .annotations = &picture, .label_file = "1.png"});
  EXPECT_EQ(read_picture(kCodeKinds, below, folder.path(), read), "");
  EXPECT_EQ(std::string(read.label_file.begin(), read.label_file.end()), "pixels");
  EXPECT_EQ(
      read_picture(kCodeKinds, coded({.name = "a", .annotations = &picture, .label_file = whole}),
                   "", read),
      "");
  EXPECT_THAT(*read_picture(kCodeKinds, below, folder.path() + "/none", read),
              testing::HasSubstr(folder.path() + "/none/1.png: No such file"));
}

}  // namespace
}  // namespace stoker
