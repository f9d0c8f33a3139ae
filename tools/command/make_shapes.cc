// stoker make-shapes: a data set of JPEG files in class folders, drawn in parallel.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <filesystem>
#include <vector>

#include "pipeline/files/parallel.h"
#include "staging/allowed_cores.h"
#include "staging/mutex.h"
#include "tools/command/command.h"
#include "tools/console/progress.h"
#include "tools/data/jpeg_writer.h"
#include "tools/data/output_file.h"
#include "tools/data/shapes.h"

namespace stoker {
namespace {

constexpr int kShapeQuality = 90;

struct SharedProgress {
  Mutex mutex;
  Progress progress GUARDED_BY(mutex);
};

struct ShapesOptions {
  std::string out;
  int64_t count = 10000;
  int64_t test_count = -1;
  int size = 32;
  uint64_t seed = 1;
  int workers = usable_cores();
};

void write_image(const ShapesOptions& options, int64_t split, int64_t index,
                 std::vector<uint8_t>& pixels) {
  const int size = options.size;
  pixels.resize(static_cast<size_t>(size) * size * 3);
  const MutableImageView view{pixels.data(), size, size, ptrdiff_t{3} * size};
  paint_shape(options.seed, split, index, view);
  const std::string& name = shape_names()[index % 10];
  const std::string path = fmt::format("{}/{}/{}/{}_{:06}.jpg", options.out,
                                       split == 0 ? "train" : "test", name, name, index / 10);
  const std::vector<uint8_t> file = encode_jpeg(view, kShapeQuality);
  write_file(path, std::as_bytes(std::span(file)));
}

void make_folders(const ShapesOptions& options) {
  for (const char* split : {"train", "test"}) {
    for (const std::string& name : shape_names()) {
      std::filesystem::create_directories(options.out + "/" + split + "/" + name);
    }
  }
}

}  // namespace

int run_make_shapes(int argc, char** argv) {
  ShapesOptions options;
  auto app = make_parser(
      "make-shapes",
      "Draws ten classes of textured shapes among clutter as JPEG files, in OUT/train/CLASS and\n"
      "OUT/test/CLASS. The same seed, counts and size give the same pictures.",
      "  stoker make-shapes --out data/shapes --count 10000 --size 32\n"
      "  stoker make-shapes --out /tmp/big --count 2000 --test-count 400 --size 256 --seed 7\n");
  app->add_option("--out", options.out, "Folder to write to")->required();
  app->add_option("--count", options.count, "Number of training images")
      ->check(CLI::Range(int64_t{10}, int64_t{10'000'000}));
  app->add_option("--test-count", options.test_count,
                  "Number of test images; -1: a fifth of --count")
      ->check(CLI::Range(int64_t{-1}, int64_t{10'000'000}));
  app->add_option("--size", options.size, "Width and height of the images, pixels")
      ->check(CLI::Range(8, 4096));
  app->add_option("--seed", options.seed, "Seed of the pictures: another seed draws others");
  app->add_option("--workers", options.workers, "Threads that draw")->check(CLI::Range(1, 1024));
  if (const auto code = parse_options(*app, argc, argv)) return *code;

  if (options.test_count < 0) options.test_count = options.count / 5;
  make_folders(options);
  const int64_t total = options.count + options.test_count;
  std::atomic<int64_t> done{0};
  SharedProgress shared{.mutex = {}, .progress = Progress(total)};
  const auto make_buffer = [] { return std::vector<uint8_t>(); };
  for_each_parallel(total, options.workers, make_buffer,
                    [&](std::vector<uint8_t>& pixels, int64_t i) {
                      const bool train = i < options.count;
                      write_image(options, train ? 0 : 1, train ? i : i - options.count, pixels);
                      const int64_t now = ++done;
                      if (now % 64 == 0) {
                        const MutexLock lock(shared.mutex);
                        shared.progress.update(now, fmt::format("{} of {} images", now, total));
                      }
                    });
  fmt::print("{} training and {} test images of {} x {} pixels in {}\n", options.count,
             options.test_count, options.size, options.size, options.out);
  return kExitOk;
}

}  // namespace stoker
