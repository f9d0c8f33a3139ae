// stoker peek draws a PNG that others can read, and that shows the data.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include <vector>

#include "tests/tools/cli_harness.h"
#include "tools/data/contact_sheet.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> pixels;
  const uint8_t* at(int x, int y) const { return &pixels[(size_t{3} * y * width) + 3 * x]; }
};

Picture read_png(const std::string& path) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  EXPECT_TRUE(png_image_begin_read_from_file(&header, path.c_str())) << header.message;
  header.format = PNG_FORMAT_RGB;
  Picture picture{static_cast<int>(header.width), static_cast<int>(header.height), {}};
  picture.pixels.resize(PNG_IMAGE_SIZE(header));
  EXPECT_TRUE(png_image_finish_read(&header, nullptr, picture.pixels.data(), 0, nullptr));
  return picture;
}

TEST(Peek, DrawsWhatTheModelSees) {
  TempFolder folder;
  // Images of a single colour, without JPEG's losses: CIFAR-100's layout, a coarse and a fine
  // label.
  std::string records;
  for (int label = 0; label < 10; ++label) {
    records += {static_cast<char>(0), static_cast<char>(label)};
    records += std::string(1024, '\xff') + std::string(1024, '\x10') + std::string(1024, '\x80');
  }
  folder.write("train.bin", records);
  const std::string sheet = folder.path() + "/sheet.png";
  const ProgramResult result = run_stoker({"peek", "--data", folder.path(), "-o", sheet, "--count",
                                           "6", "--columns", "3", "--augment", "resize"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Picture picture = read_png(sheet);
  EXPECT_EQ(picture.width, 3 * 272 + 8);
  EXPECT_EQ(picture.height, 2 * (128 + 48 + 8) + 8);
  for (const int x : {8 + 64, 8 + 272 + 64, 8 + 128 + 4 + 64}) {
    const uint8_t* pixel = picture.at(x, 8 + 64);
    EXPECT_EQ(std::vector<uint8_t>(pixel, pixel + 3), (std::vector<uint8_t>{255, 16, 128})) << x;
  }
}

// Draws that the frame on the source image does not show are a line of text, the third one.
TEST(Peek, WritesWhatElseWasDrawn) {
  TempFolder folder;
  folder.write("train.bin", std::string(2, '\0') + std::string(3072, '\x40'));
  const auto third_line = [&](const std::string& stages, uint8_t expected_pixel) {
    const std::string sheet = folder.path() + "/sheet.png";
    const ProgramResult result = run_stoker(
        {"peek", "--data", folder.path(), "-o", sheet, "--count", "1", "--augment", stages});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const Picture picture = read_png(sheet);
    EXPECT_EQ(*picture.at(8 + 64, 8 + 64), expected_pixel);
    int written = 0;
    const int top = 8 + 128 + 3 + 2 * 12;
    for (int y = top; y < top + 12; ++y) {
      for (int x = 0; x < picture.width; ++x) written += *picture.at(x, y) != *picture.at(0, 0);
    }
    return written;
  };
  EXPECT_EQ(third_line("resize | flip(p=1)", 0x40), 0);
  EXPECT_GT(third_line("resize | invert", 0xbf), 50);
}

// Two records in two greys: a tile has the grey between them, also the last one of an odd number,
// whose partner is not shown.
TEST(Peek, MixesAnyNumberOfPictures) {
  TempFolder folder;
  std::string records;
  for (const char grey : {'\0', '\xff'}) {
    records += {static_cast<char>(0), static_cast<char>(0)};
    records += std::string(3072, grey);
  }
  folder.write("train.bin", records);
  const std::string sheet = folder.path() + "/sheet.png";
  const ProgramResult result = run_stoker({"peek", "--data", folder.path(), "-o", sheet, "--count",
                                           "1", "--augment", "resize | mix(mixup=1000)"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NEAR(read_png(sheet).at(8 + 64, 8 + 64)[0], 128, 30);
}

TEST(Peek, ShowsBadFilesInsteadOfFailing) {
  TempFolder folder;
  make_small_shapes(folder.path());
  folder.write("train/disc/disc_000001.jpg", "not a picture");
  const std::string sheet = folder.path() + "/sheet.png";
  const ProgramResult result =
      run_stoker({"peek", "--data", folder.path(), "-o", sheet, "--count", "1000"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("40 pictures of 224 x 224"));
  EXPECT_GT(read_png(sheet).width, 224);
}

TEST(Peek, AFullDiskIsOneLineWithThePath) {
  TempFolder folder;
  make_small_shapes(folder.path());
  const ProgramResult result = run_stoker({"peek", "--data", folder.path(), "-o", "/dev/full"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(count_lines(result.err), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("/dev/full: No space left on device"));
}

TEST(ContactSheet, ClipsWhatReachesOverTheEdge) {
  ContactSheet sheet({4, 3}, {9, 9, 9});
  const std::vector<uint8_t> red(size_t{5} * 5 * 3, 200);
  sheet.draw_image({red.data(), 5, 5, 15}, 2, -3, 1);
  sheet.draw_image({red.data(), 1, 1, 3}, -1, 2, 2);  // its right half is column 0
  sheet.draw_frame({-10, -10, 100, 100}, {1, 2, 3});
  sheet.draw_text("clipped", -2, 1, 100, 3, {4, 5, 6});
  EXPECT_EQ(sheet.view().data[2 * 3 * 4], 200);
  EXPECT_EQ(sheet.view().data[3 * 3], 200);
  EXPECT_EQ(sheet.view().data[3 * 1], 9);
}

TEST(BitmapFont, HasEveryPrintableCharacterOnce) {
  for (char a = '!'; a <= '~'; ++a) {
    for (char b = ' '; b < a; ++b) EXPECT_NE(glyph(a), glyph(b)) << a << b;
  }
  EXPECT_EQ(glyph('\n'), glyph('?'));
  EXPECT_EQ(glyph('\xe4'), glyph('?'));
}

TEST(Peek, AFullDiskLeavesNoHalfSheet) {
  TempFolder data, out;
  make_small_shapes(data.path());
  const ProgramResult result = run_program({"bash", "-c",
                                            "ulimit -f 8; exec '" STOKER_PROGRAM "' peek --data '" +
                                                data.path() + "' -o '" + out.path() + "/x.png'"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(count_lines(result.err), 1) << result.err;
  EXPECT_TRUE(std::filesystem::is_empty(out.path()));
}

}  // namespace
}  // namespace stoker
