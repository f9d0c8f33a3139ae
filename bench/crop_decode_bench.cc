// The crop-aware decoder beside the exact path and beside stock libjpeg-turbo: random-resized crops
// to 224 of real files, CPU time per image and per stage, variants interleaved; and how far its
// pixels are from the exact ones.
//
//   crop_decode_bench FOLDER [rounds] [limit] [train|eval|whole]
//
// FOLDER is searched for JPEG files. `eval` is Resize(256) + CenterCrop(224), `whole` the image as
// it is (CIFAR as JPEG).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "decode/crop_decoder.h"
#include "decode/image_decoder.h"
#include "decode/jpeg_decoder.h"
#include "decode/seek_index.h"

namespace stoker {
namespace {

constexpr int kOutput = 224;
constexpr int64_t kMaxPixels = 1 << 28;

struct Sample {
  std::vector<uint8_t> bytes;
  Size size;
  std::vector<uint8_t> row_index, fine_index;
};

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

std::vector<Sample> load(const char* folder, size_t limit) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Sample> samples;
  SeekIndexBuilder builder;
  const size_t step = std::max<size_t>(1, paths.size() / limit);
  for (size_t i = 0; i < paths.size() && samples.size() < limit; i += step) {
    std::ifstream file(paths[i], std::ios::binary);
    Sample sample{{std::istreambuf_iterator<char>(file), {}}, {}, {}, {}};
    ImageDecoder decoder;
    ImageInfo info;
    if (!decoder.info(sample.bytes, info).ok() || info.format != ImageFormat::jpeg) continue;
    sample.size = info.size;
    builder.build(sample.bytes, SeekStep::row, sample.row_index);
    builder.build(sample.bytes, SeekStep::eight, sample.fine_index);
    samples.push_back(std::move(sample));
  }
  return samples;
}

CropSpec train_crop(Size size, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(0, 1);
  CropSpec spec{{0, 0, size.width, size.height}, {kOutput, kOutput}, {0, 0, kOutput, kOutput}};
  for (int i = 0; i < 10; ++i) {
    const double area = double(size.width) * size.height * (0.08 + 0.92 * uniform(random));
    const double ratio = std::exp(std::log(0.75) + uniform(random) * std::log(16.0 / 9));
    const int w = static_cast<int>(std::lround(std::sqrt(area * ratio)));
    const int h = static_cast<int>(std::lround(std::sqrt(area / ratio)));
    if (w < 1 || h < 1 || w > size.width || h > size.height) continue;
    spec.crop = {static_cast<int>(uniform(random) * (size.width - w + 1)),
                 static_cast<int>(uniform(random) * (size.height - h + 1)), w, h};
    break;
  }
  spec.flip = uniform(random) < 0.5;
  return spec;
}

CropSpec eval_crop(Size size) {
  CropSpec spec{{0, 0, size.width, size.height}, {}, {0, 0, kOutput, kOutput}};
  const int shorter = std::min(size.width, size.height);
  spec.resized = {256 * size.width / shorter, 256 * size.height / shorter};
  spec.window.x = (spec.resized.width - kOutput) / 2;
  spec.window.y = (spec.resized.height - kOutput) / 2;
  return spec;
}

CropSpec whole(Size size) {
  return {{0, 0, size.width, size.height}, size, {0, 0, size.width, size.height}};
}

struct Work {
  const Sample* sample;
  CropSpec spec;
};

std::vector<Work> plan(const std::vector<Sample>& samples, const std::string& mode, int round) {
  std::mt19937_64 random(static_cast<uint64_t>(round) + 1);
  std::vector<Work> work;
  for (const Sample& s : samples) {
    const CropSpec spec = mode == "eval"    ? eval_crop(s.size)
                          : mode == "whole" ? whole(s.size)
                                            : train_crop(s.size, random);
    work.push_back({&s, spec});
  }
  return work;
}

// Takes rows and drops them: what stock libjpeg-turbo costs before any resize.
class NoSink final : public RowSink {
 public:
  void rows(const uint8_t*, ptrdiff_t, int) override {}
};

struct Variant {
  std::string name;
  std::function<bool(const Work&, MutableImageView)> run;
  std::vector<double> seconds = {};
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

MutableImageView view(std::vector<uint8_t>& pixels, const CropSpec& spec) {
  pixels.resize(static_cast<size_t>(spec.window.width) * spec.window.height * 3);
  return {pixels.data(), spec.window.width, spec.window.height, 3 * spec.window.width};
}

void compare(const std::vector<Work>& work, const Variant& fast, const Variant& exact) {
  std::vector<uint8_t> a, b;
  double sum = 0, squares = 0, worst = 0;
  int64_t count = 0;
  int declined = 0;
  for (const Work& w : work) {
    const MutableImageView out_a = view(a, w.spec), out_b = view(b, w.spec);
    if (!exact.run(w, out_b)) continue;
    if (!fast.run(w, out_a)) {
      ++declined;
      continue;
    }
    double image = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const int d = a[i] - b[i];
      image += std::abs(d);
      squares += d * d;
    }
    sum += image;
    count += static_cast<int64_t>(a.size());
    worst = std::max(worst, image / static_cast<double>(a.size()));
  }
  const double n = static_cast<double>(count);
  std::printf("quality: MAE %.4f, worst image %.3f, PSNR %.2f dB, not for CropDecoder %d of %zu\n",
              sum / n, worst, 10 * std::log10(255.0 * 255.0 * n / squares), declined, work.size());
}

void measure(const std::vector<Sample>& samples, const std::string& mode, int rounds,
             std::vector<Variant>& variants) {
  constexpr size_t kBlock = 50;
  std::vector<uint8_t> pixels;
  for (int round = 0; round < rounds; ++round) {
    const std::vector<Work> work = plan(samples, mode, round);
    std::vector<double> seconds(variants.size(), 0);
    for (size_t begin = 0; begin < work.size(); begin += kBlock) {
      for (size_t i = 0; i < variants.size(); ++i) {
        const size_t v = (i + begin / kBlock) % variants.size();
        const double from = cpu_seconds();
        for (size_t k = begin; k < std::min(work.size(), begin + kBlock); ++k) {
          variants[v].run(work[k], view(pixels, work[k].spec));
        }
        seconds[v] += cpu_seconds() - from;
      }
    }
    for (size_t v = 0; v < variants.size(); ++v) variants[v].seconds.push_back(seconds[v]);
  }
  const double images = static_cast<double>(samples.size());
  std::printf("%-40s %10s %10s %10s\n", "variant", "us/image", "images/s", "x first");
  for (const Variant& v : variants) {
    std::vector<double> ratios;
    for (size_t r = 0; r < v.seconds.size(); ++r) {
      ratios.push_back(variants[0].seconds[r] / v.seconds[r]);
    }
    const double s = median(v.seconds);
    std::printf("%-40s %10.1f %10.0f %10.2f\n", v.name.c_str(), 1e6 * s / images, images / s,
                median(ratios));
  }
}

void print_index_sizes(const std::vector<Sample>& samples) {
  size_t bytes = 0, rows = 0, fine = 0;
  for (const Sample& s : samples) {
    bytes += s.bytes.size();
    rows += s.row_index.size();
    fine += s.fine_index.size();
  }
  const auto print = [&](const char* name, size_t size) {
    std::printf("%s: %.0f bytes per image, %.2f %% of the data\n", name,
                static_cast<double>(size) / static_cast<double>(samples.size()),
                100 * static_cast<double>(size) / static_cast<double>(bytes));
  };
  print("index per row", rows);
  print("index per 8 MCUs", fine);
}

int run(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: crop_decode_bench FOLDER [rounds] [limit] [train|eval|whole]\n");
    return 2;
  }
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  const size_t limit = argc > 3 ? static_cast<size_t>(std::atoi(argv[3])) : 300;
  const std::string mode = argc > 4 ? argv[4] : "train";
  const std::vector<Sample> samples = load(argv[1], limit);
  CropDecoder crop(kMaxPixels);
  ImageDecoder exact;
  JpegDecoder stock(kMaxPixels);
  RowResizer resizer;
  NoSink nothing;
  std::vector<Variant> variants;
  variants.push_back({"exact (ImageDecoder)", [&](const Work& w, MutableImageView out) {
                        return exact.decode(w.sample->bytes, w.spec, out).ok();
                      }});
  variants.push_back({"stock libjpeg region, no resize", [&](const Work& w, MutableImageView out) {
                        Box box = resizer.begin(w.spec, out);
                        box.x += w.spec.crop.x;
                        box.y += w.spec.crop.y;
                        Size size;
                        return stock.open(w.sample->bytes, size).ok() &&
                               stock.read(box, nothing).ok();
                      }});
  variants.push_back({"fast (CropDecoder)", [&](const Work& w, MutableImageView out) {
                        return crop.decode(w.sample->bytes, w.spec, out);
                      }});
  variants.push_back({"fast, index per row of MCUs", [&](const Work& w, MutableImageView out) {
                        return crop.decode(w.sample->bytes, w.spec, out, w.sample->row_index);
                      }});
  variants.push_back({"fast, index per 8 MCUs", [&](const Work& w, MutableImageView out) {
                        return crop.decode(w.sample->bytes, w.spec, out, w.sample->fine_index);
                      }});
  std::printf("%zu images, %s\n", samples.size(), mode.c_str());
  print_index_sizes(samples);
  compare(plan(samples, mode, 0), variants[2], variants[0]);
  measure(samples, mode, rounds, variants);
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  try {
    return stoker::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "crop_decode_bench: %s\n", error.what());
    return 3;
  }
}
