// The CPU time that decoding pictures of any format takes: whole, and as random-resized crops to
// 224 pixels with exact pixels. bench/peers/codecs/run compares it with Pillow and OpenCV.
//
//   codec_bench FOLDER [ROUNDS]
//
// Reads all files of FOLDER into memory. Prints a line, "files whole crop": their number, and the
// medians of ROUNDS (default 5) in microseconds per picture. The crops are those of
// bench/peers/codecs/run.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "bench/report/statistics.h"
#include "decode/image_decoder.h"
#include "tools/machine/load.h"

namespace stoker {
namespace {

constexpr int kSide = 224;

// Numbers in [0, 1), the same in bench/peers/codecs/run.
class Draws {
 public:
  double next() {
    state_ = state_ * 1664525u + 1013904223u;
    return state_ / 4294967296.0;
  }

 private:
  uint32_t state_ = 1;
};

Box random_crop(Size size, Draws& draws) {
  const double area = (0.08 + 0.92 * draws.next()) * size.width * size.height;
  const double ratio = 0.75 + (4.0 / 3 - 0.75) * draws.next();
  Box box;
  box.width = std::clamp(static_cast<int>(std::sqrt(area * ratio)), 1, size.width);
  box.height = std::clamp(static_cast<int>(std::sqrt(area / ratio)), 1, size.height);
  box.x = static_cast<int>(draws.next() * (size.width - box.width + 1));
  box.y = static_cast<int>(draws.next() * (size.height - box.height + 1));
  return box;
}

class Work {
 public:
  explicit Work(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) {
      std::ifstream file(path, std::ios::binary);
      files_.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  }

  size_t size() const { return files_.size(); }

  // Returns the microseconds of CPU time for each picture.
  double run(bool is_whole) {
    Draws draws;
    const double begin = thread_cpu_seconds();
    for (const std::vector<uint8_t>& file : files_) {
      ImageInfo info;
      if (!decoder_.info(file, info).ok()) fail();
      CropSpec spec{{0, 0, info.size.width, info.size.height}, info.size, {}};
      if (!is_whole) spec = {random_crop(info.size, draws), {kSide, kSide}, {}};
      spec.window = {0, 0, spec.resized.width, spec.resized.height};
      out_.resize(size_t{3} * spec.window.width * spec.window.height);
      const MutableImageView view{out_.data(), spec.window.width, spec.window.height,
                                  ptrdiff_t{3} * spec.window.width};
      if (!decoder_.decode(file, spec, view).ok()) fail();
    }
    return 1e6 * (thread_cpu_seconds() - begin) / static_cast<double>(files_.size());
  }

 private:
  [[noreturn]] static void fail() {
    std::fprintf(stderr, "codec_bench: a file cannot be decoded\n");
    std::exit(1);
  }

  std::vector<std::vector<uint8_t>> files_;
  ImageDecoder decoder_;
  std::vector<uint8_t> out_;
};

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  using namespace stoker;
  if (argc < 2) {
    std::fprintf(stderr, "usage: codec_bench FOLDER [ROUNDS]\n");
    return 2;
  }
  Work work(argv[1]);
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 5;
  std::vector<double> whole, crop;
  work.run(true);  // warms caches and buffers
  for (int round = 0; round < rounds; ++round) {
    whole.push_back(work.run(true));
    crop.push_back(work.run(false));
  }
  std::printf("%zu %.1f %.1f\n", work.size(), median(whole), median(crop));
  return 0;
}
