#include "pipeline/source/annotated/yolo.h"

#include <gtest/gtest.h>

#include "tests/support/same_annotations.h"
#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

std::string yolo_picture(const std::string& text) {
  Annotations found;
  found.size = {200, 100};
  const std::string problem = read_yolo_rows(text, found);
  return problem.empty() ? describe(found) : problem;
}

TEST(Yolo, ReadsBoxesAndPolygons) {
  EXPECT_EQ(yolo_picture("1 0.5 0.5 0.25 0.5\r\n\n 0\t0.125 .5 0.25 0.75 1 0.25 \n"),
            "200x100\n"
            "0: id 0 class 1 box 75 25 125 75 area 2500\n"
            "1: id 1 class 0 box 25 25 200 75 area 8750 polygon 25 50 50 75 200 25\n");
  EXPECT_EQ(yolo_picture(""), "200x100\n");
}

TEST(Yolo, SaysWhatIsWrong) {
  EXPECT_EQ(yolo_picture("0 0.5 0.5 0.1\n"),
            "line 1: 4 numbers; a box has 5, a polygon an odd number of at least 7");
  EXPECT_EQ(yolo_picture("0 0.5 0.5 0.1 0.1\n0 0.5 0.5 0.1 0.1 0.9\n"),
            "line 2: 6 numbers; a box has 5, a polygon an odd number of at least 7");
  EXPECT_EQ(yolo_picture("0 0.5 x 0.1 0.1"), "line 1: 'x' is no number");
  EXPECT_EQ(yolo_picture("0 0.5 0.5, 0.1 0.1"), "line 1: '0.5,' is no number");
  EXPECT_EQ(yolo_picture("0.5 0.5 0.5 0.1 0.1"), "line 1: the class is 0.500000");
  EXPECT_EQ(yolo_picture("-1 0.5 0.5 0.1 0.1"), "line 1: the class is -1.000000");
  EXPECT_EQ(yolo_picture("0 0.5 50 0.1 0.1"),
            "line 1: 50.000000 is no share of the picture, from 0 to 1");
  EXPECT_EQ(yolo_picture("0 0.5 nan 0.1 0.1"),
            "line 1: nan is no share of the picture, from 0 to 1");
}

TEST(Yolo, ReadsClassNames) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(read_yolo_classes("nc: 2\nnames: ['a b', \"c\", d]  # all\n"),
            (Names{"a b", "c", "d"}));
  EXPECT_EQ(read_yolo_classes("names: [\n  a,\n  b\n]\n"), (Names{"a", "b"}));
  EXPECT_EQ(
      read_yolo_classes("path: x\nnames:\n  0: person\n  2: 'traffic light' # red\n\nnc: 3\n"),
      (Names{"person", "", "traffic light"}));
  EXPECT_EQ(read_yolo_classes("names:\n- a\n- b: c\ntrain: x\n"), (Names{"a", "b: c"}));
  EXPECT_EQ(read_yolo_classes("names: {0: a, 1: b}"), (Names{"a", "b"}));
  EXPECT_EQ(read_yolo_classes("train: x\n"), Names{});
  EXPECT_EQ(read_yolo_classes("names:\n  -1: a\n  9999999999: b\n"), Names{});
}

TEST(Yolo, ReadsFilesOfAFolder) {
  const TempFolder folder;
  folder.write("data.yaml", "names: [cat, dog]\n");
  folder.write("labels/train/a.rf.1.txt", "1 0.5 0.5 1 1\n");
  folder.write("labels/train/b.txt", "2 0.5 0.5 1 1\n");
  folder.write("labels/train/gone.txt", "0 0.5 0.5 1 1\n");
  folder.write("labels/train/wrong.txt", "0\n");
  folder.write("labels/train/classes.txt", "x\ny\n");
  const std::string labels = folder.path() + "/labels/train";
  const std::vector<std::string> names = yolo_names(labels);
  EXPECT_EQ(names, (std::vector<std::string>{"a.rf.1", "b", "gone", "wrong"}));
  const SharedAnnotations set = open_yolo(labels, names, [](size_t i) {
    return i == 2 ? Size{} : Size{10, 20};
  });
  EXPECT_EQ(set->info().class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_FALSE(set->info().masks);
  Annotations found;
  EXPECT_EQ(set->read(0, found), "");
  EXPECT_EQ(describe(found), "10x20\n0: id 0 class 1 box 0 0 10 20 area 200\n");
  EXPECT_EQ(set->read(1, found),
            "object 0 (id 0): the class is 2, which is none of the data's classes");
  EXPECT_EQ(set->read(2, found), "the size of its picture is not known");
  EXPECT_EQ(set->read(3, found),
            "line 1: 1 numbers; a box has 5, a polygon an odd number of at least 7");
}

TEST(Yolo, TakesClassesOfATextWithoutYaml) {
  const TempFolder folder;
  folder.write("classes.txt", "cat\r\ndog\n");
  folder.write("a.txt", "");
  EXPECT_EQ(open_yolo(folder.path(), {"a"},
                      [](size_t) {
                        return Size{1, 1};
                      })
                ->info()
                .class_names,
            (std::vector<std::string>{"cat", "dog"}));
}

}  // namespace
}  // namespace stoker
