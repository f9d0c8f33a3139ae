// Label images: Pillow's numbers (tests/golden/annotation/make_labels.py), libpng's pixels, and
// what is refused.
#include "decode/label_image.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "tests/decode/pixels.h"
#include "tests/decode/png_maker.h"
#include "tests/decode/png_reference.h"

namespace stoker {
namespace {

constexpr int64_t kMostLabels = 1 << 20;

std::string label_problem(std::span<const uint8_t> file, int label_bytes,
                          int64_t max_pixels = kMostLabels) {
  LabelImage image;
  return read_label_image(file, label_bytes, max_pixels, image);
}

std::vector<int32_t> labels_of(const LabelImage& image) {
  if (image.label_bytes == 1) return {image.pixels.begin(), image.pixels.end()};
  std::vector<int32_t> labels(image.pixels.size() / sizeof(int32_t));
  std::memcpy(labels.data(), image.pixels.data(), image.pixels.size());
  return labels;
}

TEST(LabelImages, HavePillowsNumbers) {
  const std::string folder = std::string(STOKER_GOLDEN_DIR) + "/annotation/";
  std::ifstream lines(folder + "labels.txt");
  LabelImage image;  // for all: nothing is left of the file before
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    std::istringstream words(line);
    std::string name;
    Size size;
    words >> name >> size.width >> size.height;
    const std::vector<int32_t> expected{std::istream_iterator<int32_t>(words), {}};
    const std::vector<uint8_t> file = read_file(folder + "labels/" + name);
    for (const int label_bytes : {4, 1}) {
      if (label_bytes == 1 && (name == "gray16.png" || name == "rgb8.png")) continue;
      EXPECT_EQ(read_label_image(file, label_bytes, kMostLabels, image), "") << name;
      EXPECT_EQ(image.size, size) << name;
      EXPECT_EQ(image.label_bytes, label_bytes) << name;
      EXPECT_EQ(labels_of(image), expected) << name;
    }
  }
  EXPECT_EQ(count, 10);
}

// The shade of gray that libpng shows of each pixel, or red + 256 green + 65536 blue; a palette's
// numbers are read as gray.
std::vector<int32_t> reference_labels(const PngKind& kind, std::vector<uint8_t> file) {
  if (kind.colours == 3) {
    std::vector<PngChunk> chunks = split_png(file);
    chunks[0].data[9] = 0;  // the kind of colours
    std::erase_if(chunks, [](const PngChunk& chunk) { return chunk.name == "PLTE"; });
    file = join_png(chunks);
  }
  const int step = kind.bits == 1 || kind.colours == 3 ? 255 / ((1 << kind.bits) - 1) : 1;
  const PngReference reference = read_png_reference(file);
  EXPECT_TRUE(reference.is_read) << reference.problem;
  std::vector<int32_t> labels;
  for (size_t i = 0; i < reference.pixels.size(); i += 3) {
    const uint8_t* const pixel = &reference.pixels[i];
    labels.push_back(kind.colours == 2 ? pixel[0] | pixel[1] << 8 | pixel[2] << 16
                                       : pixel[0] / step);
  }
  return labels;
}

TEST(LabelImages, HaveThePixelsOfLibpng) {
  constexpr int kKinds[][2] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {3, 1},
                               {3, 2}, {3, 4}, {3, 8}, {2, 8}};
  LabelImage image;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    PngKind kind;
    kind.size = {1 + static_cast<int>(seed * 7 % 41), 1 + static_cast<int>(seed * 5 % 29)};
    kind.colours = kKinds[seed % 9][0];
    kind.bits = kKinds[seed % 9][1];
    kind.is_interlaced = seed % 2 == 1;
    kind.piece = seed % 5 == 0 ? 13 : 0;
    const std::vector<uint8_t> file = make_png(kind, seed);
    const std::vector<int32_t> expected = reference_labels(kind, file);
    for (const int label_bytes : {1, 4}) {
      if (label_bytes == 1 && kind.colours == 2) continue;
      ASSERT_EQ(read_label_image(file, label_bytes, kMostLabels, image), "");
      ASSERT_EQ(image.size, kind.size);
      ASSERT_EQ(labels_of(image), expected) << kind.colours << " " << kind.bits;
    }
  }
}

TEST(LabelImages, OfOtherKindsAreRefused) {
  const auto problem = [](int colours, int bits, int label_bytes) {
    PngKind kind;
    kind.colours = colours;
    kind.bits = bits;
    return label_problem(make_png(kind, 1), label_bytes);
  };
  EXPECT_EQ(problem(4, 8, 4), "a label image with alpha");
  EXPECT_EQ(problem(6, 8, 4), "a label image with alpha");
  EXPECT_EQ(problem(2, 16, 4), "a label image of RGB with 16 bits");
  EXPECT_EQ(problem(2, 8, 1), "a label image of RGB, where labels have one byte");
  EXPECT_EQ(problem(0, 16, 1), "a label image with 16 bits, where labels have one byte");
  EXPECT_EQ(problem(0, 16, 4), "");
}

TEST(LabelImages, AreNotLargerThanTheLimit) {
  PngKind kind;
  kind.colours = 0;
  const std::vector<uint8_t> file = make_png(kind, 1);
  EXPECT_EQ(label_problem(file, 1, 400), "");
  EXPECT_EQ(label_problem(file, 1, 399), "a label image of 20x20 pixels; the limit is 399");
  EXPECT_EQ(label_problem(std::vector<uint8_t>{0xff, 0xd8, 0xff}, 1),
            "a label image that is not a PNG");
  EXPECT_EQ(label_problem({}, 1), "a label image that is not a PNG");
}

TEST(LabelImages, OfMorePixelsThanTheFileCanHoldTakeNoMemory) {
  PngKind kind;
  kind.colours = 0;
  std::vector<PngChunk> chunks = split_png(make_png(kind, 1));
  chunks[0].data[1] = chunks[0].data[5] = 0xff;  // sides of 16 million pixels
  LabelImage image;
  EXPECT_EQ(read_label_image(join_png(chunks), 4, int64_t{1} << 62, image),
            "a label image with too little data");
  EXPECT_EQ(image.pixels.capacity(), 0u);
}

TEST(LabelImages, ThatExifTurnsAreRefused) {
  PngKind kind;
  kind.colours = 0;
  std::vector<PngChunk> chunks = split_png(make_png(kind, 1));
  const auto with_orientation = [&](uint8_t orientation) {
    std::vector<PngChunk> all = chunks;
    const std::vector<uint8_t> exif = {'M', 'M', 0, 42, 0, 0, 0,           8, 0, 1, 1, 0x12, 0,
                                       3,   0,   0, 0,  1, 0, orientation, 0, 0, 0, 0, 0,    0};
    all.insert(all.begin() + 1, PngChunk{"eXIf", exif});
    return label_problem(join_png(all), 1);
  };
  EXPECT_EQ(with_orientation(1), "");
  EXPECT_EQ(with_orientation(6), "a label image that EXIF turns (orientation 6)");
}

TEST(LabelImages, ThatAreDamagedAreRefused) {
  PngKind kind;
  kind.size = {9, 7};
  kind.colours = 3;
  const std::vector<uint8_t> file = make_png(kind, 3);
  for (size_t end = 0; end < file.size(); ++end) {
    EXPECT_NE(label_problem(std::span(file).first(end), 1), "") << end;
  }
  for (size_t at = 0; at < file.size(); ++at) {
    std::vector<uint8_t> damaged = file;
    damaged[at] ^= 0x10;
    EXPECT_NE(label_problem(damaged, 1), "") << at;
  }
}

}  // namespace
}  // namespace stoker
