// What the feeder itself costs: everything but decode and pixel work. Each case comes twice: the
// pixels alone (Augmenter in a loop) and the same rows through a Loader; the difference per row, in
// CPU time of the whole process, is the feeder: sampling, messages, labels, notes, ring, copy to
// the device's slot, hand-over.
//
//   feed_bench --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true
//
// Look at us_per_row (CPU) and at the smallest repetition (the line "min"): other programs on the
// machine only ever add. CIFAR is a file of random pixels in CIFAR-10's binary layout; the images
// are made-up JPEGs of 500 x 375 in memory, so that reading is not in it, and once as files.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "pipeline/loader.h"
#include "pipeline/random_key.h"
#include "tools/jpeg_writer.h"

namespace stoker {
namespace {

constexpr int kCifarRows = 10'000;
constexpr int kImages = 64;

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// A folder of the benchmark's data, made once and removed at the end.
class DataFolder {
 public:
  DataFolder() : path_(std::filesystem::temp_directory_path() / "stoker-feed-bench") {
    std::filesystem::create_directories(path_ / "cifar-10-batches-bin");
    std::ofstream cifar(path_ / "cifar-10-batches-bin" / "test_batch.bin", std::ios::binary);
    const RandomKey key(1, 0, 0);
    for (uint32_t i = 0; i < kCifarRows; ++i) {
      std::vector<uint64_t> pixels(3072 / 8);
      for (uint32_t j = 0; j < pixels.size(); ++j) pixels[j] = key.bits(i * 512 + j);
      cifar.put(static_cast<char>(i % 10));
      cifar.write(reinterpret_cast<const char*>(pixels.data()), 3072);
    }
  }
  ~DataFolder() { std::filesystem::remove_all(path_); }
  std::filesystem::path path() const { return path_; }

 private:
  const std::filesystem::path path_;
};

std::vector<uint8_t> make_image(uint64_t seed) {
  constexpr int kWidth = 500, kHeight = 375;
  const RandomKey key(seed, 0, 0);
  std::vector<uint8_t> pixels(size_t{3} * kWidth * kHeight);
  for (size_t i = 0; i < pixels.size(); ++i) {
    const size_t x = i / 3 % kWidth, y = i / 3 / kWidth;
    pixels[i] = static_cast<uint8_t>((x * (seed % 5 + 1) / 4 + y / 2 + i % 3 * 40) % 200 +
                                     key.bits(static_cast<uint32_t>(i)) % 24);
  }
  return encode_jpeg({pixels.data(), kWidth, kHeight, ptrdiff_t{3} * kWidth}, 90);
}

// JPEG files in memory, given out without a copy.
class MemorySource final : public Source {
 public:
  MemorySource() {
    for (int i = 0; i < kImages; ++i) files_.push_back(make_image(static_cast<uint64_t>(i)));
  }
  int64_t size() const override { return kImages * 100; }
  int label(SampleId id) const override { return static_cast<int>(id % 2); }
  std::string name(SampleId id) const override { return std::to_string(id); }
  const std::string& root() const override { return root_; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  SampleEncoding encoding() const override { return SampleEncoding::image_file; }
  Size raw_size() const override { return {}; }
  ReadStatus read(SampleId id, std::vector<uint8_t>&,
                  std::span<const uint8_t>& bytes) const override {
    bytes = files_[static_cast<size_t>(id) % files_.size()];
    return {};
  }
  uint64_t fingerprint() const override { return 1; }

 private:
  const std::string root_;
  const std::vector<std::string> class_names_ = {"a", "b"};
  std::vector<std::vector<uint8_t>> files_;
};

AugmentSpec cifar_spec() {
  AugmentSpec spec;
  spec.output = {32, 32};
  spec.crop = CropMode::pad_random;
  spec.pad = 2;
  spec.flip = FlipMode::alternating;
  return spec;
}

AugmentSpec image_spec() {
  AugmentSpec spec;
  spec.output = {224, 224};
  spec.crop = CropMode::random_resized;
  spec.flip = FlipMode::random;
  return spec;
}

void report(benchmark::State& state, int64_t rows, double seconds) {
  state.counters["us_per_row"] = 1e6 * seconds / static_cast<double>(rows);
  state.counters["rows_per_cpu_s"] = static_cast<double>(rows) / seconds;
}

// The pixel work alone, into a ring of rows as large as the Loader's slabs.
void pixels_alone(benchmark::State& state, const Source& source, const AugmentSpec& spec,
                  int rows) {
  Augmenter augmenter(spec, {});
  const size_t row_bytes = size_t{3} * spec.output.width * spec.output.height;
  std::vector<uint8_t> slab(4 * static_cast<size_t>(rows) * row_bytes);
  std::vector<uint8_t> buffer;
  SampleId id = 0;
  int64_t done = 0;
  double seconds = 0;
  for (auto _ : state) {
    const double start = cpu_seconds();
    for (int row = 0; row < rows; ++row, ++done) {
      id = (id + 7919) % source.size();  // scattered, as a shuffled epoch is
      std::span<const uint8_t> bytes;
      source.read(id, buffer, bytes);
      Size size;
      AugmentDraw draw;
      MutableImageView out{slab.data() + static_cast<size_t>(done) % (4 * rows) * row_bytes,
                           spec.output.width, spec.output.height, ptrdiff_t{3} * spec.output.width};
      const DecodeStatus status =
          source.encoding() == SampleEncoding::image_file
              ? augmenter.file_row(bytes, 1, 0, id, out, size, draw)
              : augmenter.raw_row(bytes, source.encoding() == SampleEncoding::raw_planar,
                                  source.raw_size(), 1, 0, id, out, draw);
      if (!status.ok()) state.SkipWithError(status.message.c_str());
    }
    seconds += cpu_seconds() - start;
  }
  report(state, state.iterations() * rows, seconds);
}

// The host device's copy of a slab's rows to a slot: in the Loader's cost, but not on a GPU's CPU.
void copy_alone(benchmark::State& state, const AugmentSpec& spec, int rows) {
  const size_t slab_bytes = size_t{3} * spec.output.width * spec.output.height * rows;
  std::vector<uint8_t> slabs(4 * slab_bytes, 1), slots(2 * slab_bytes, 1);
  int64_t step = 0;
  double seconds = 0;
  for (auto _ : state) {
    const double start = cpu_seconds();
    std::memcpy(slots.data() + step % 2 * slab_bytes, slabs.data() + step % 4 * slab_bytes,
                slab_bytes);
    benchmark::ClobberMemory();
    seconds += cpu_seconds() - start;
    ++step;
  }
  report(state, state.iterations() * rows, seconds);
}

void through_loader(benchmark::State& state, const Source& source, const AugmentSpec& spec,
                    int rows) {
  const auto device = make_host_device();
  const auto stream = device->make_stream();
  LoaderOptions options;
  options.batch_size = rows;
  options.epochs = -1;
  options.workers = static_cast<int>(state.range(0));
  Loader loader(source, spec, {device.get()}, options);
  for (int i = 0; i < 2 * options.ring_depth; ++i) loader.next(0, *stream);  // warm, ring full
  const int64_t before = loader.stats().decode.items;
  const double start = cpu_seconds();
  for (auto _ : state) loader.next(0, *stream);
  const double seconds = cpu_seconds() - start;
  report(state, loader.stats().decode.items - before, seconds);
}

double smallest(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

void add(const std::string& name, const Source& source, const AugmentSpec& spec, int rows) {
  const auto settings = [](benchmark::internal::Benchmark* one) {
    one->MeasureProcessCPUTime()->UseRealTime()->MinTime(0.5)->ComputeStatistics("min", smallest);
  };
  settings(benchmark::RegisterBenchmark(
      (name + "/pixels_alone").c_str(),
      [&source, spec, rows](benchmark::State& state) { pixels_alone(state, source, spec, rows); }));
  settings(benchmark::RegisterBenchmark(
      (name + "/copy_alone").c_str(),
      [spec, rows](benchmark::State& state) { copy_alone(state, spec, rows); }));
  for (const int workers : {0, 1, 2}) {
    settings(benchmark::RegisterBenchmark((name + "/loader/workers").c_str(),
                                          [&source, spec, rows](benchmark::State& state) {
                                            through_loader(state, source, spec, rows);
                                          })
                 ->Arg(workers));
  }
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  using namespace stoker;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const DataFolder folder;
  const auto cifar = open_source(folder.path() / "cifar-10-batches-bin", Split::test);
  const MemorySource images;
  for (int i = 0; i < kImages; ++i) {
    const auto bytes = make_image(static_cast<uint64_t>(i));
    const auto place = folder.path() / "images" / (i % 2 ? "a" : "b");
    std::filesystem::create_directories(place);
    std::ofstream(place / (std::to_string(i) + ".jpg"), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  const auto files = open_source(folder.path() / "images", Split::all);
  add("cifar", *cifar, cifar_spec(), 512);
  add("images_224", images, image_spec(), 64);
  add("files_224", *files, image_spec(), 64);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
