#include "tools/command/bench_data.h"

#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <stdexcept>

#include "bench/suite/memory_source.h"
#include "pipeline/files/printable_name.h"
#include "pipeline/random/random_key.h"
#include "tools/data/jpeg_writer.h"
#include "tools/data/output_file.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr int kImages = 64;
constexpr int kWidth = 500, kHeight = 375, kQuality = 90;

// Stripes with some noise.
std::vector<uint8_t> draw_picture(uint64_t seed) {
  const RandomKey key(seed, 0, 0);
  std::vector<uint8_t> pixels(size_t{3} * kWidth * kHeight);
  for (size_t i = 0; i < pixels.size(); ++i) {
    const size_t x = i / 3 % kWidth, y = i / 3 / kWidth;
    pixels[i] = static_cast<uint8_t>((x * (seed % 5 + 1) / 4 + y / 2 + i % 3 * 40) % 200 +
                                     key.bits(static_cast<uint32_t>(i)) % 24);
  }
  return encode_jpeg({pixels.data(), kWidth, kHeight, ptrdiff_t{3} * kWidth}, kQuality);
}

std::string draw_pictures() {
  std::string folder = fs::temp_directory_path() / "stoker-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("cannot make " + folder);
  for (const char* name : {"a", "b"}) fs::create_directory(fs::path(folder) / name);
  for (int i = 0; i < kImages; ++i) {
    const std::vector<uint8_t> bytes = draw_picture(static_cast<uint64_t>(i));
    write_file(fs::path(folder) / (i % 2 ? "a" : "b") / (std::to_string(i) + ".jpg"),
               std::as_bytes(std::span(bytes)));
  }
  return folder;
}

}  // namespace

void add_bench_data_options(CLI::App& app, BenchDataOptions& options) {
  app.add_option("--data", options.data.data,
                 "The data, as for stoker check: a folder, shards or a list (default: 64 drawn "
                 "JPEGs of 500 x 375)");
  add_field_options(app, options.data);
  options.data.split = "all";
  options.data.pixels = "fast";  // as in training
  add_split_option(app, options.data);
  app.add_flag("--in-memory", options.in_memory,
               "Read all files into memory first, to measure without storage");
  add_augment_choice(app, options.augment);
  add_decode_options(app, options.data);
  app.add_option("--io-threads", options.data.io_threads,
                 "Threads that read the files that are not in memory")
      ->check(CLI::Range(0, 1024));
}

BenchData::BenchData(const BenchDataOptions& options)
    : drawn_(options.data.data.empty() ? draw_pictures() : "") {
  try {
    DataOptions data = options.data;
    if (!drawn_.empty()) data.data = drawn_;
    files_ = open_data(data, drawn_.empty() ? parse_split(data.split) : Split::all);
    if (options.in_memory) memory_ = std::make_unique<MemorySource>(*files_);
  } catch (...) {
    if (!drawn_.empty()) fs::remove_all(drawn_);
    throw;
  }
}

BenchData::~BenchData() {
  std::error_code ignored;
  if (!drawn_.empty()) fs::remove_all(drawn_, ignored);
}

std::string BenchData::describe() const {
  const std::string what = drawn_.empty() ? printable_name(files_->root())
                                          : std::to_string(kImages) + " drawn JPEGs of 500 x 375";
  return what + (memory_ ? ", from memory" : ", from files");
}

}  // namespace stoker
