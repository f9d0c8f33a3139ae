#include "pipeline/source/annotated/label_folder.h"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

// The first 26 bytes of a PNG, and something behind them.
std::string png_head(char bits, char colours) {
  return std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1", 24) + bits + colours + "rest";
}

std::vector<std::string> names_of(const AnnotationSet& set) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < set.pictures(); ++i) names.emplace_back(set.name(i));
  return names;
}

TEST(LabelFolder, HasAFileForEachPicture) {
  const TempFolder folder;
  folder.write("training/a.png", png_head(8, 0));
  folder.write("validation/b.PNG", png_head(8, 3));
  folder.write("index.mat");
  const SharedAnnotations set = open_label_folder(folder.path());
  EXPECT_TRUE(set->info().label_image && !set->info().objects);
  EXPECT_EQ(set->info().label_bytes, 1);
  EXPECT_EQ(names_of(*set), (std::vector<std::string>{"training/a", "validation/b"}));
  Annotations found;
  EXPECT_EQ(set->read(1, found), "");
  EXPECT_EQ(std::string(found.label_file.begin(), found.label_file.end()), png_head(8, 3));
}

TEST(LabelFolder, TakesCityscapesClasses) {
  const TempFolder folder;
  const std::string name = "train/bonn/bonn_000000_000019";
  folder.write(name + "_gtFine_color.png", png_head(8, 6));
  folder.write(name + "_gtFine_instanceIds.png", png_head(16, 0));
  folder.write(name + "_gtFine_labelIds.png", png_head(8, 0));
  folder.write(name + "_gtFine_polygons.json");
  const SharedAnnotations set = open_label_folder(folder.path());
  EXPECT_EQ(names_of(*set), std::vector<std::string>{name + "_leftImg8bit"});
  EXPECT_EQ(set->info().label_bytes, 1);
  Annotations found;
  EXPECT_EQ(set->read(0, found), "");
  EXPECT_EQ(std::string(found.label_file.begin(), found.label_file.end()), png_head(8, 0));
}

TEST(LabelFolder, ColoursAndSixteenBitsAreLabelsOfFourBytes) {
  for (const auto& [bits, colours, bytes] :
       {std::tuple(8, 2, 4), std::tuple(8, 6, 4), std::tuple(16, 0, 4), std::tuple(8, 0, 1),
        std::tuple(4, 3, 1)}) {
    const TempFolder folder;
    folder.write("a.png", png_head(static_cast<char>(bits), static_cast<char>(colours)));
    EXPECT_EQ(open_label_folder(folder.path())->info().label_bytes, bytes) << bits << colours;
  }
}

TEST(LabelFolder, RefusesWhatIsNone) {
  const TempFolder folder;
  EXPECT_EQ(message_of([&] { open_label_folder(folder.path()); }),
            folder.path() + ": no .png there");
  folder.write("a.png", "short");
  EXPECT_NE(message_of([&] { open_label_folder(folder.path()); }).find("a.png"), std::string::npos);
}

}  // namespace
}  // namespace stoker
