// Run lengths: pycocotools's by hash (tests/golden/annotation/make_masks.py), a plain twin that
// walks along all points of a boundary, and texts.
#include "pipeline/annotation/run_lengths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/pipeline/golden_masks.h"

namespace stoker {
namespace {

using Runs = std::vector<uint32_t>;
using Points = std::vector<std::array<double, 2>>;

Runs polygon_runs(const Points& points, Size size) {
  Runs runs;
  append_polygon_runs(points, size, runs);
  return runs;
}

std::vector<bool> bits_of(const Runs& runs) {
  std::vector<bool> bits;
  for (size_t i = 0; i < runs.size(); ++i) bits.insert(bits.end(), runs[i], i % 2 == 1);
  return bits;
}

// As rleFrPoly() goes: along each edge in steps of a fifth of a pixel.
std::vector<bool> walked_bits(const Points& points, Size size) {
  const auto fine = [](double value) { return static_cast<int>(5 * value + 0.5); };
  std::vector<std::array<int, 2>> way;
  for (size_t i = 0; i < points.size(); ++i) {
    const auto& end = points[(i + 1) % points.size()];
    const int x0 = fine(points[i][0]), y0 = fine(points[i][1]);
    const int x1 = fine(end[0]), y1 = fine(end[1]);
    const int dx = std::abs(x1 - x0), dy = std::abs(y1 - y0);
    const bool is_steep = dy > dx, is_back = is_steep ? y0 > y1 : x0 > x1;
    const int steps = std::max(dx, dy);
    const int from_x = is_back ? x1 : x0, from_y = is_back ? y1 : y0;
    const int to_x = is_back ? x0 : x1, to_y = is_back ? y0 : y1;
    for (int d = 0; d <= steps; ++d) {
      const int t = is_back ? steps - d : d;
      if (steps == 0) {
        way.push_back({x0, y0});
      } else if (is_steep) {
        const double slope = double(to_x - from_x) / steps;
        way.push_back({static_cast<int>(from_x + slope * t + 0.5), from_y + t});
      } else {
        const double slope = double(to_y - from_y) / steps;
        way.push_back({from_x + t, static_cast<int>(from_y + slope * t + 0.5)});
      }
    }
  }
  std::vector<bool> bits(static_cast<size_t>(size.width) * size.height);
  for (size_t i = 1; i < way.size(); ++i) {
    const int left = std::min(way[i][0], way[i - 1][0]), upper = std::min(way[i][1], way[i - 1][1]);
    if (way[i][0] == way[i - 1][0] || left < 0 || left % 5 != 2 || left / 5 >= size.width) continue;
    const double row = std::ceil((std::max(upper, 0) + 0.5) / 5 - 0.5);
    const size_t first = static_cast<size_t>(left / 5) * size.height;
    for (int y = static_cast<int>(std::max(row, 0.0)); y < size.height; ++y) {
      bits[first + y] = !bits[first + y];
    }
  }
  return bits;
}

// Calls draw(polygon, size) for random polygons: some on the fine grid, some with short edges, some
// far outside.
template <class Draw>
void draw_polygons(int count, uint32_t seed, const Draw& draw) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int i = 0; i < count; ++i) {
    const Size size{1 + below(40), 1 + below(40)};
    const int kind = below(4);
    const double reach = kind == 3 ? 700 : kind == 2 ? 3 : 60;
    std::uniform_real_distribution<double> place(-reach, reach + 20);
    Points points(3 + static_cast<size_t>(below(9)));
    for (auto& point : points) {
      for (double& value : point)
        value = kind == 1 ? std::floor(10 * place(random)) / 10 : place(random);
    }
    if (below(5) == 0) points[1] = points[0];
    draw(points, size);
  }
}

TEST(RunLengths, OfPolygonsArePycocotools) { EXPECT_EQ(check_golden_masks("polygons.txt"), 100); }

TEST(RunLengths, OfPixelsGoDownTheColumns) {
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    const Size size{1 + static_cast<int>(random() % 9), 1 + static_cast<int>(random() % 9)};
    std::vector<uint8_t> pixels(static_cast<size_t>(size.width * size.height));
    for (uint8_t& pixel : pixels) pixel = random() % 3 == 0 ? static_cast<uint8_t>(random()) : 0;
    Runs runs;
    append_pixel_runs(pixels, size, runs);
    EXPECT_EQ(check_runs(runs, size), "");
    const std::vector<bool> bits = bits_of(runs);
    ASSERT_EQ(bits.size(), pixels.size());
    for (size_t i = 0; i < bits.size(); ++i) {
      const auto height = static_cast<size_t>(size.height);
      const size_t at = i % height * static_cast<size_t>(size.width) + i / height;
      ASSERT_EQ(bits[i], pixels[at] != 0) << round << " " << i;
    }
  }
}

TEST(RunLengths, OfABox) {
  EXPECT_EQ(polygon_runs({{1, 1}, {3, 1}, {3, 2}, {1, 2}}, {4, 3}), (Runs{4, 1, 2, 1, 4}));
  EXPECT_EQ(polygon_runs({{0, 0}, {4, 0}, {4, 3}, {0, 3}}, {4, 3}), (Runs{0, 12}));
  EXPECT_EQ(polygon_runs({{-9, -9}, {1e300, -9}, {1e300, 1e300}, {-9, 1e300}}, {4, 3}),
            (Runs{0, 12}));
  EXPECT_EQ(polygon_runs({{2, 2}, {2, 2}, {2, 2}}, {4, 3}), Runs{12});
  Runs two = polygon_runs({{1, 1}, {3, 1}, {3, 2}, {1, 2}}, {4, 3});
  append_polygon_runs(Points{{0, 0}, {1, 0}, {1, 1}, {0, 1}}, {4, 3}, two);
  EXPECT_EQ(two, (Runs{4, 1, 2, 1, 4, 0, 1, 11}));
}

TEST(RunLengths, AreThoseOfAWalkAlongTheBoundary) {
  int ones = 0;
  draw_polygons(4000, 1, [&](const Points& points, Size size) {
    const Runs runs = polygon_runs(points, size);
    EXPECT_EQ(check_runs(runs, size), "");
    EXPECT_EQ(std::count(runs.begin() + 1, runs.end(), 0u), 0);
    const std::vector<bool> bits = bits_of(runs);
    ones += static_cast<int>(std::count(bits.begin(), bits.end(), true));
    ASSERT_EQ(bits, walked_bits(points, size)) << testing::PrintToString(points);
  });
  EXPECT_GT(ones, 100000);
}

TEST(RunLengths, AreReadFromATextOfPycocotools) {
  Runs expected{0, 1, 202, 17};  // a box across two columns with a second part
  const auto append = [&](int times, const Runs& runs) {
    for (; times > 0; --times) expected.insert(expected.end(), runs.begin(), runs.end());
  };
  append(5, {23, 17});
  append(2, {5, 15, 3, 17});
  append(17, {23, 17});
  append(1, {820});
  Runs runs;
  EXPECT_EQ(
      append_text_runs("01Z6`0]J000000000^ONN22NN2d0000000000000000000000000000000000mh0", runs),
      "");
  EXPECT_EQ(runs, expected);
}

// As rleToString() of pycocotools.
std::string text_of_runs(const Runs& runs) {
  std::string text;
  for (size_t i = 0; i < runs.size(); ++i) {
    int64_t number = runs[i];
    if (i > 2) number -= runs[i - 2];
    for (bool is_last = false; !is_last;) {
      int digit = static_cast<int>(number & 31);
      number >>= 5;
      is_last = number == ((digit & 16) != 0 ? -1 : 0);
      text += static_cast<char>(48 + (is_last ? digit : digit | 32));
    }
  }
  return text;
}

TEST(RunLengths, AreReadAsTheyWereWritten) {
  std::mt19937 random(3);
  for (int i = 0; i < 1000; ++i) {
    Runs runs(random() % 20);
    for (uint32_t& run : runs) run = static_cast<uint32_t>(random()) >> random() % 32;
    Runs read{3, 4};
    ASSERT_EQ(append_text_runs(text_of_runs(runs), read), "");
    runs.insert(runs.begin(), {3, 4});
    ASSERT_EQ(read, runs);
  }
}

TEST(RunLengths, OfABadTextAreRefused) {
  const auto problem = [](std::string_view text) {
    Runs runs;
    return append_text_runs(text, runs);
  };
  EXPECT_EQ(problem(""), "");
  EXPECT_EQ(problem("41P"), "the text of run lengths ends in the middle of run 2");
  EXPECT_EQ(problem("4 1"), "run 1 has a character that no text of run lengths has, at byte 1");
  EXPECT_EQ(problem("4\xff"), "run 1 has a character that no text of run lengths has, at byte 1");
  EXPECT_EQ(problem("PPPPPPPP0"), "run 0 has too many characters");
  EXPECT_EQ(problem("O"), "run 0 is -1 pixels long");
  EXPECT_EQ(problem("011N"), "run 3 is -1 pixels long");
  EXPECT_EQ(problem("PPPPPP4"), "run 0 is 4294967296 pixels long");
  EXPECT_EQ(problem("ooooooO"), "run 0 is -1 pixels long");
}

TEST(RunLengths, MustAddUpToThePicture) {
  EXPECT_EQ(check_runs(Runs{1, 2, 3}, {3, 2}), "");
  EXPECT_EQ(check_runs(Runs{1, 2, 2}, {3, 2}),
            "the run lengths add up to 5 pixels, the picture has 6");
  EXPECT_EQ(check_runs(Runs{UINT32_MAX, 7}, {3, 2}),
            "the run lengths add up to 4294967302 pixels, the picture has 6");
}

}  // namespace
}  // namespace stoker
