// Times aspect buckets of very many samples, and the pass over the headers of pictures.
//
//   bucket_bench SAMPLES [DIR]
//
// Draws the sizes of so many pictures, puts them into 20 buckets, and begins a feed of 256 rows a
// batch in the middle of an epoch, nine times: from the constructor of the Loader to the first
// batch, of generated pixels. DIR: a folder of pictures whose headers are read, with all cores,
// from the page cache. Prints a Markdown table.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "pipeline/loader.h"
#include "pipeline/source/picture_sizes.h"
#include "pipeline/source/synthetic_source.h"
#include "staging/device.h"
#include "staging/stage_stats.h"

namespace stoker {
namespace {

double ms_since(int64_t begin_ns) { return 1e-6 * static_cast<double>(steady_now_ns() - begin_ns); }

void print_row(const char* what, std::vector<double> times_ms) {
  std::sort(times_ms.begin(), times_ms.end());
  std::printf("| %s | %.1f (%.1f-%.1f) |\n", what, times_ms[times_ms.size() / 2], times_ms.front(),
              times_ms.back());
}

// About the shapes of photographs.
std::vector<Size> draw_sizes(int64_t samples) {
  std::mt19937_64 random(1);
  std::vector<Size> sizes(static_cast<size_t>(samples));
  for (Size& size : sizes) {
    size = {400 + static_cast<int>(random() % 800), 400 + static_cast<int>(random() % 800)};
  }
  return sizes;
}

void time_resume(int64_t samples) {
  const auto source = make_synthetic_source(samples, {64, 64}, 10, 1);
  const std::vector<Size> pictures = draw_sizes(samples);
  BucketOptions options{.sizes = aspect_sizes(64 * 64, 2, 2.2)};
  const auto middle = static_cast<std::ptrdiff_t>(options.sizes.size() / 2);
  options.sizes = {options.sizes.begin() + middle - 10, options.sizes.begin() + middle + 10};
  const int64_t begin_ns = steady_now_ns();
  const auto buckets = std::make_shared<const AspectBuckets>(pictures, options);
  std::printf("%zu buckets of %ld samples, made in %.0f ms from the sizes\n\n",
              buckets->buckets().size(), long{buckets->samples()}, ms_since(begin_ns));
  std::printf("| | ms (range) |\n|---|---|\n");
  const auto device = make_host_device();
  const auto stream = device->make_stream();
  const AugmentSpec augment("resize_cover | random_crop | flip", {64, 64});
  std::vector<double> times_ms;
  for (int round = 0; round < 9; ++round) {
    LoaderOptions loader_options{.batch_size = 256, .seed = 1, .epochs = -1};
    loader_options.buckets = buckets;
    loader_options.last_batch = LastBatch::merge;
    loader_options.first_step = samples / 512;
    const int64_t start_ns = steady_now_ns();
    Loader loader(*source, augment, {device.get()}, loader_options);
    const DeviceBatch batch = loader.next(0, *stream);
    times_ms.push_back(ms_since(start_ns));
  }
  print_row("first batch in the middle of an epoch", times_ms);
}

void time_headers(const char* folder) {
  const auto source = open_source(folder, Split::all);
  std::vector<double> times_ms;
  for (int round = 0; round < 6; ++round) {
    const int64_t start_ns = steady_now_ns();
    static_cast<void>(picture_sizes(*source, {.cache_dir = ""}));
    if (round > 0) times_ms.push_back(ms_since(start_ns));
  }
  const std::string what = "the headers of " + std::to_string(source->size()) + " files";
  print_row(what.c_str(), times_ms);
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  if (argc < 2 || std::atoll(argv[1]) < 1024) {
    std::fprintf(stderr, "usage: bucket_bench SAMPLES [DIR]\n");
    return 2;
  }
  stoker::time_resume(std::atoll(argv[1]));
  if (argc > 2) stoker::time_headers(argv[2]);
  return 0;
}
