#include "pipeline/annotation/run_lengths.h"

#include <algorithm>
#include <limits>

#include "pipeline/annotation/polygon_columns.h"

namespace stoker {
namespace {

// Adds pixels to the end of a mask. `first`: where its runs begin.
void add_run(std::vector<uint32_t>& runs, size_t first, bool are_ones, uint32_t length) {
  if (length == 0) return;
  if (runs.size() == first) runs.push_back(0);
  const bool last_are_ones = (runs.size() - first) % 2 == 0;
  if (last_are_ones == are_ones) {
    runs.back() += length;
  } else {
    runs.push_back(length);
  }
}

}  // namespace

void append_polygon_runs(std::span<const std::array<double, 2>> points, Size size,
                         std::vector<uint32_t>& runs) {
  const auto height = static_cast<uint32_t>(size.height);
  std::vector<uint32_t> changes;  // where in the picture zeros become ones, and ones zeros
  cross_columns(
      points, size, [](int) { return true; },
      [&](int column, int row) {
        changes.push_back(static_cast<uint32_t>(column) * height + static_cast<uint32_t>(row));
      });
  std::sort(changes.begin(), changes.end());
  const size_t first = runs.size();
  bool are_ones = false;
  uint32_t from = 0;
  for (const uint32_t change : changes) {
    add_run(runs, first, are_ones, change - from);
    are_ones = !are_ones;
    from = change;
  }
  add_run(runs, first, are_ones, static_cast<uint32_t>(size.width) * height - from);
}

void append_pixel_runs(std::span<const uint8_t> pixels, Size size, std::vector<uint32_t>& runs) {
  const auto width = static_cast<size_t>(size.width), height = static_cast<size_t>(size.height);
  bool is_inside = false;
  uint32_t run = 0;
  for (size_t x = 0; x < width; ++x) {
    for (size_t y = 0; y < height; ++y, ++run) {
      if ((pixels[y * width + x] != 0) == is_inside) continue;
      runs.push_back(run);
      run = 0;
      is_inside = !is_inside;
    }
  }
  runs.push_back(run);
}

std::string append_text_runs(std::string_view text, std::vector<uint32_t>& runs) {
  // A character has five bits of a number, lowest first, and says whether more follow; the last
  // one's highest bit is the sign. From the fourth run on a number is what is added to the run two
  // before. (rleFrString() of pycocotools.)
  constexpr int kBits = 5, kMostBits = 35;
  constexpr char kFirst = '0';
  const size_t first = runs.size();
  for (size_t at = 0; at < text.size();) {
    const std::string name = "run " + std::to_string(runs.size() - first);
    int64_t number = 0;
    for (int bits = 0;; bits += kBits) {
      if (at == text.size()) return "the text of run lengths ends in the middle of " + name;
      const int digit = text[at++] - kFirst;
      if (digit < 0 || digit >= 64) {
        return name + " has a character that no text of run lengths has, at byte " +
               std::to_string(at - 1);
      }
      if (bits == kMostBits) return name + " has too many characters";
      number |= int64_t{digit & 0x1f} << bits;
      if ((digit & 0x20) != 0) continue;
      if ((digit & 0x10) != 0) number -= int64_t{1} << (bits + kBits);
      break;
    }
    if (runs.size() - first > 2) number += runs[runs.size() - 2];
    if (number < 0 || number > std::numeric_limits<uint32_t>::max()) {
      return name + " is " + std::to_string(number) + " pixels long";
    }
    runs.push_back(static_cast<uint32_t>(number));
  }
  return "";
}

std::string check_runs(std::span<const uint32_t> runs, Size size) {
  uint64_t sum = 0;
  for (const uint32_t run : runs) sum += run;
  const uint64_t pixels = static_cast<uint64_t>(size.width) * static_cast<uint64_t>(size.height);
  if (sum == pixels) return "";
  return "the run lengths add up to " + std::to_string(sum) + " pixels, the picture has " +
         std::to_string(pixels);
}

}  // namespace stoker
