// Compares the crop-aware decoder under all pixel policies, with and without seek indexes, while it
// notes places for one, and with those that one crop before left, with stock libjpeg-turbo. Decodes
// random-resized crops to 224 of real files; the variants take turns.
// Prints the CPU time per image and the difference from the pixels of libjpeg and Pillow 13.
//
//   crop_decode_bench FOLDER [rounds] [limit] [train|eval|whole] [progressive|all|VARIANT] [avx2]
//
// FOLDER is searched for JPEG files. `eval` is Resize(256) + CenterCrop(224); `whole` is the
// unchanged image (CIFAR as JPEG). `progressive` decodes copies of the files: the same coefficients
// in libjpeg's usual scans, with their own Huffman tables; they have no indexes. A VARIANT, named
// as in the table, is measured alone. `avx2`: without AVX-512.
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/peers/crops/crop_work.h"
#include "bench/report/program.h"
#include "bench/report/statistics.h"
#include "decode/crop_decoder.h"
#include "decode/jpeg/libjpeg_decoder.h"
#include "decode/resize/row_resizer.h"
#include "tools/machine/load.h"

namespace stoker {
namespace {

constexpr int64_t kMaxPixels = 1 << 28;

// Takes rows and drops them, to measure stock libjpeg-turbo without any resize.
class NoSink final : public RowSink {
 public:
  void rows(const uint8_t*, ptrdiff_t, int) override {}
};

struct Variant {
  std::string name;
  std::function<bool(const CropWork&, MutableImageView)> run;
  std::vector<double> seconds = {};
};

void compare(const std::vector<CropWork>& work, const Variant& ours, const Variant& exact) {
  std::vector<uint8_t> a, b;
  double sum = 0, squares = 0, worst = 0;
  int64_t count = 0;
  int declined = 0;
  for (const CropWork& w : work) {
    const MutableImageView out_a = output_of(w.spec, a), out_b = output_of(w.spec, b);
    if (!exact.run(w, out_b)) continue;
    if (!ours.run(w, out_a)) {
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
  std::printf("%s: MAE %.4f, worst image %.3f, PSNR %.2f dB, not for CropDecoder %d of %zu\n",
              ours.name.c_str(), sum / n, worst, 10 * std::log10(255.0 * 255.0 * n / squares),
              declined, work.size());
}

void measure(const std::vector<JpegSample>& samples, const std::string& mode, int rounds,
             std::vector<Variant>& variants) {
  constexpr size_t kBlock = 50;
  std::vector<uint8_t> pixels;
  for (int round = 0; round < rounds; ++round) {
    const std::vector<CropWork> work = plan_crops(samples, mode, round);
    std::vector<double> seconds(variants.size(), 0);
    for (size_t begin = 0; begin < work.size(); begin += kBlock) {
      for (size_t i = 0; i < variants.size(); ++i) {
        const size_t v = (i + begin / kBlock) % variants.size();
        const double from = process_cpu_seconds();
        for (size_t k = begin; k < std::min(work.size(), begin + kBlock); ++k) {
          variants[v].run(work[k], output_of(work[k].spec, pixels));
        }
        seconds[v] += process_cpu_seconds() - from;
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

// Returns the index that a crop of another round leaves of each sample.
std::map<const JpegSample*, std::vector<uint8_t>> noted_places(
    const std::vector<JpegSample>& samples, const std::string& mode, int rounds) {
  std::map<const JpegSample*, std::vector<uint8_t>> noted;
  CropDecoder decoder(kMaxPixels, PixelPolicy::fast);
  decoder.record_places();
  std::vector<uint8_t> pixels;
  for (const CropWork& w : plan_crops(samples, mode, rounds)) {
    decoder.decode(w.sample->bytes, w.spec, output_of(w.spec, pixels));
    const std::span<const uint8_t> index = decoder.recorded_index();
    noted[w.sample].assign(index.begin(), index.end());
  }
  return noted;
}

void print_index_sizes(const std::vector<JpegSample>& samples) {
  size_t bytes = 0, rows = 0, fine = 0;
  for (const JpegSample& s : samples) {
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
    std::fprintf(stderr,
                 "usage: crop_decode_bench FOLDER [rounds] [limit] [train|eval|whole] "
                 "[progressive|all|VARIANT] [avx2]\n");
    return 2;
  }
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  const size_t limit = argc > 3 ? static_cast<size_t>(std::atoi(argv[3])) : 300;
  const std::string mode = argc > 4 ? argv[4] : "train";
  const std::string_view what = argc > 5 ? argv[5] : "all";
  const bool is_progressive = what == "progressive", is_one = what != "all" && !is_progressive;
  if (argc > 6 && std::string_view(argv[6]) == "avx2") {
    hwy::DisableTargets(HWY_AVX2 - 1);  // a better target is a smaller bit
  }
  std::vector<JpegSample> samples = load_jpegs(argv[1], limit);
  if (is_progressive) make_progressive(samples);
  JpegDecoder stock(kMaxPixels);
  RowResizer resizer(PixelPolicy::exact);
  NoSink nothing;
  const auto libjpeg = [&](RowSink& sink) {
    return [&](const CropWork& w, MutableImageView out) {
      Box box = resizer.begin(w.spec, out);
      box.x += w.spec.crop.x;
      box.y += w.spec.crop.y;
      Size size;
      return stock.open(w.sample->bytes, size).ok() && stock.read(box, sink).ok();
    };
  };
  std::vector<Variant> variants;
  variants.push_back({"libjpeg-turbo, Pillow's resize", libjpeg(resizer)});
  variants.push_back({"libjpeg-turbo, no resize", libjpeg(nothing)});
  std::vector<std::unique_ptr<CropDecoder>> decoders, noting;
  const auto noted = noted_places(samples, mode, rounds);
  for (const PixelPolicy policy :
       {PixelPolicy::exact, PixelPolicy::exact_pillow12, PixelPolicy::fast}) {
    decoders.push_back(std::make_unique<CropDecoder>(kMaxPixels, policy));
    CropDecoder* decoder = decoders.back().get();
    const std::string name = to_string(policy);
    variants.push_back({name, [decoder](const CropWork& w, MutableImageView out) {
                          return decoder->decode(w.sample->bytes, w.spec, out);
                        }});
    if (is_progressive) continue;
    variants.push_back(
        {name + ", index per row of MCUs", [decoder](const CropWork& w, MutableImageView out) {
           return decoder->decode(w.sample->bytes, w.spec, out, w.sample->row_index);
         }});
    variants.push_back(
        {name + ", index per 8 MCUs", [decoder](const CropWork& w, MutableImageView out) {
           return decoder->decode(w.sample->bytes, w.spec, out, w.sample->fine_index);
         }});
    noting.push_back(std::make_unique<CropDecoder>(kMaxPixels, policy));
    noting.back()->record_places();
    variants.push_back({name + ", noting places",
                        [decoder = noting.back().get()](const CropWork& w, MutableImageView out) {
                          return decoder->decode(w.sample->bytes, w.spec, out);
                        }});
    variants.push_back({name + ", places of a crop before",
                        [&noted, decoder](const CropWork& w, MutableImageView out) {
                          return decoder->decode(w.sample->bytes, w.spec, out, noted.at(w.sample));
                        }});
  }
  if (is_one) {
    std::erase_if(variants, [&](const Variant& v) { return v.name != what; });
    if (variants.empty()) throw std::invalid_argument("no variant is named " + std::string(what));
    measure(samples, mode, rounds, variants);
    return 0;
  }
  std::printf("%zu images, %s%s\n", samples.size(), mode.c_str(),
              is_progressive ? ", progressive copies" : "");
  if (!is_progressive) print_index_sizes(samples);
  for (size_t v = 2; v < variants.size(); v += is_progressive ? 1 : 5) {
    compare(plan_crops(samples, mode, 0), variants[v], variants[0]);
  }
  measure(samples, mode, rounds, variants);
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  return stoker::run_program("crop_decode_bench", stoker::run, argc, argv);
}
