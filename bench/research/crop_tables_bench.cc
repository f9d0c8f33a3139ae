// Measures what every image costs before its first pixel is decoded: the weights of the resize,
// compared with the plain reference functions, and the lookup tables of its Huffman codes. Weights
// and codes are those of random-resized crops to 224 of real files.
//
//   crop_tables_bench FOLDER [--benchmark_...]
//
// An item is an image: two axes of Pillow's weights, or up to three axes of CropDecoder's.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/report/program.h"
#include "bench/research/crop_work.h"
#include "decode/jpeg/huffman_tables.h"
#include "decode/jpeg/row_upsampling.h"
#include "decode/resize/planar_axis.h"
#include "decode/resize/resample_table.h"

namespace stoker {
namespace {

constexpr size_t kFiles = 100;

struct Image {
  std::vector<ResampleKey> pillow;
  std::vector<PlanarAxisKey> planar;
  std::vector<HuffmanSpec> dc, ac;
};

PlanarAxisKey across_key(const BaselineJpeg& jpeg, const CropSpec& spec, int c) {
  const JpegComponent& component = jpeg.components[c];
  return {spec.crop.x,
          spec.crop.width,
          spec.resized.width,
          spec.window.x,
          spec.window.width,
          spec.flip,
          jpeg.max_across / component.across,
          upsampling_of(jpeg, component).across,
          component.size.width};
}

Image image_of(const BaselineJpeg& jpeg, const CropSpec& spec) {
  Image image;
  image.pillow = {{spec.crop.width, spec.resized.width, spec.window.x, spec.window.width, spec.flip,
                   spec.filter},
                  {spec.crop.height, spec.resized.height, spec.window.y, spec.window.height, false,
                   spec.filter}};
  image.planar = {across_key(jpeg, spec, 0),
                  {spec.crop.y, spec.crop.height, spec.resized.height, spec.window.y,
                   spec.window.height, false, 1, Upsampling::replicate, jpeg.size.height}};
  if (jpeg.component_count == 3 && jpeg.components[1].across != jpeg.max_across) {
    image.planar.push_back(across_key(jpeg, spec, 1));
  }
  for (const HuffmanSpec& dc : jpeg.dc) {
    if (dc.counts != nullptr) image.dc.push_back(dc);
  }
  for (const HuffmanSpec& ac : jpeg.ac) {
    if (ac.counts != nullptr) image.ac.push_back(ac);
  }
  return image;
}

template <class Work>
void each_image(benchmark::State& state, const std::vector<Image>& images, const Work& work) {
  size_t i = 0;
  for (auto _ : state) {
    work(images[i++ % images.size()]);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}

using BuildAxis = bool (*)(const PlanarAxisKey&, PlanarAxis&);
using BuildTable = void (*)(const ResampleKey&, ResampleTable&);

void planar(benchmark::State& state, const std::vector<Image>& images, BuildAxis build) {
  PlanarAxis axes[3];
  each_image(state, images, [&](const Image& image) {
    for (size_t k = 0; k < image.planar.size(); ++k) build(image.planar[k], axes[k]);
  });
}

void pillow(benchmark::State& state, const std::vector<Image>& images, BuildTable build) {
  ResampleTable tables[2];
  each_image(state, images, [&](const Image& image) {
    for (size_t k = 0; k < image.pillow.size(); ++k) build(image.pillow[k], tables[k]);
  });
}

void huffman(benchmark::State& state, const std::vector<Image>& images) {
  DcTable dc_table;
  AcTable ac_table;
  each_image(state, images, [&](const Image& image) {
    for (const HuffmanSpec& dc : image.dc) build_dc_table(dc, dc_table);
    for (const HuffmanSpec& ac : image.ac) build_ac_table(ac, ac_table);
  });
}

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: crop_tables_bench FOLDER [--benchmark_...]\n");
    return 2;
  }
  const std::vector<JpegSample> samples = load_jpegs(argv[1], kFiles);
  std::vector<Image> images;
  for (const CropWork& work : plan_crops(samples, "train", 0)) {
    BaselineJpeg jpeg;
    if (parse_baseline(work.sample->bytes, jpeg)) images.push_back(image_of(jpeg, work.spec));
  }
  if (images.empty()) throw std::runtime_error(std::string(argv[1]) + ": no baseline JPEGs");
  using benchmark::RegisterBenchmark;
  RegisterBenchmark("planar axes/plain", planar, images, build_planar_axis_reference);
  RegisterBenchmark("planar axes", planar, images, build_planar_axis);
  RegisterBenchmark("Pillow's tables/plain", pillow, images, build_resample_table_reference);
  RegisterBenchmark("Pillow's tables", pillow, images, build_resample_table);
  RegisterBenchmark("Huffman tables", huffman, images);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  return stoker::run_program("crop_tables_bench", stoker::run, argc, argv);
}
