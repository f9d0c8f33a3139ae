// The steady state: our code allocates nothing per batch, memory does not grow over epochs and
// stays within the plan. Counts every operator new of the program, so it is a separate program.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>

#include "pipeline/feed/memory_plan.h"
#include "pipeline/source/synthetic_source.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/decode/process_memory.h"
#include "tests/pipeline/loader_support.h"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

void* operator new(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace stoker::testing {
namespace {

// On a busy machine a worker may fill its first row late, and grows its scratch then. One
// allocation per batch would be 200.
constexpr int64_t kAllocationsOfAFirstRow = 40;

LoaderOptions steady_options(int workers) {
  return {.batch_size = 16, .epochs = -1, .feed = {.workers = workers}};
}

// Takes batches without keeping any of them.
void run(Loader& loader, Stream& stream, int steps) {
  for (int step = 0; step < steps; ++step) {
    const DeviceBatch batch = loader.next(0, stream);
    ASSERT_TRUE(batch);
  }
}

TEST(SteadyState, AllocatesNothingPerBatch) {
  const auto files = jpeg_source(20);
  const auto raw = make_synthetic_source(200, {16, 16}, 3, 1);
  for (const bool is_file : {false, true}) {
    for (const int workers : {0, 2}) {
      const auto device = make_host_device();
      const auto stream = device->make_stream();
      AugmentSpec augment = is_file ? crop_spec() : pad_spec();
      augment.mix = {.mixup_alpha = 0.4, .cutmix_alpha = 1};
      Loader loader(is_file ? *static_cast<Source*>(files.get()) : *raw, augment, {device.get()},
                    steady_options(workers));
      run(loader, *stream, 100);
      stream->synchronize();
      const int64_t before = allocations;
      run(loader, *stream, 200);
      stream->synchronize();
      EXPECT_LE(allocations - before, kAllocationsOfAFirstRow)
          << (is_file ? "files" : "raw") << ", workers " << workers;
    }
  }
}

// The orders that keep no table per epoch.
TEST(SteadyState, OrdersAllocateNothingPerBatch) {
  const auto raw = make_synthetic_source(200, {16, 16}, 3, 1);
  const std::vector<double> weights(200, 0.1);
  const std::vector<int32_t> labels(200, 4);
  const SharedOrder orders[] = {
      weighted_order(weights, {.length = 300}), class_balanced_order(labels, 300),
      repeated_order({.samples = 200}),
      blend_order({.sizes = {50, 150}, .schedule = {{0, {1, 1}}}, .length = 300})};
  for (const SharedOrder& order : orders) {
    const auto device = make_host_device();
    const auto stream = device->make_stream();
    LoaderOptions options = steady_options(2);
    options.order = order;
    Loader loader(*raw, pad_spec(), {device.get()}, options);
    run(loader, *stream, 100);
    stream->synchronize();
    const int64_t before = allocations;
    run(loader, *stream, 200);
    stream->synchronize();
    EXPECT_LE(allocations - before, kAllocationsOfAFirstRow) << order->describe();
  }
}

TEST(SteadyState, MemoryDoesNotGrowOverEpochs) {
  const auto files = jpeg_source(40);
  const auto device = make_host_device();
  const auto stream = device->make_stream();
  LoaderOptions options = steady_options(2);
  options.digests = true;
  Loader loader(*files, crop_spec(), {device.get()}, options);
  run(loader, *stream, 20 * 3);
  const int64_t before = process_bytes("VmRSS");
  run(loader, *stream, 300 * 3);
  EXPECT_LT(process_bytes("VmRSS") - before, int64_t{1} << 20);
}

TEST(SteadyState, ScratchStaysWithinThePlan) {
  const AugmentSpec augment("random_resized_crop(scale=(0.9, 1)) | flip | color_jitter(0.2)",
                            {224, 224});
  const DecodeOptions decode;
  const auto source = jpeg_source(1);
  Augmenter augmenter(augment, decode);
  std::vector<uint8_t> out(224 * 224 * 3);
  for (const Size size : {Size{4000, 300}, Size{300, 4000}, Size{2000, 1500}}) {
    const std::vector<uint8_t> file = jpeg_file(size.width, size.height, 1);
    Size seen;
    for (int64_t sample = 0; sample < 5; ++sample) {
      ASSERT_TRUE(augmenter.file_row(file, 1, 0, sample, {out.data(), 224, 224, 672}, seen).ok());
    }
  }
  EXPECT_LE(augmenter.scratch_bytes(), worker_scratch_bytes(*source, augment, decode));
}

// The peak while images are decoded that are far larger than the batch: rows, not frames.
TEST(SteadyState, LargeImagesStayWithinThePlan) {
  const std::vector<uint8_t> file = jpeg_file(6000, 2500, 1);  // 45 MB as pixels
  const auto file_bytes = static_cast<int64_t>(file.size());
  const FakeSource source({file}, 8, 2);
  const auto device = make_host_device();
  const auto stream = device->make_stream();
  LoaderOptions options = steady_options(2);
  options.batch_size = 4;
  malloc_trim(0);
  const int64_t before = process_bytes("VmRSS");
  Loader loader(source, crop_spec(64), {device.get()}, options);
  run(loader, *stream, 3);
  const int64_t files_under_way = 2 * (3 * 2 + 2);  // units of read-ahead, of two rows each
  const int64_t plan = loader.memory_plan().total_bytes() + files_under_way * file_bytes;
  EXPECT_LT(process_bytes("VmRSS") - before, plan);
}

// Ends the process. The exit code is 0 if the peak of its memory grew by at most what the plan
// allows, and by at least the `least` bytes that the set needs.
[[noreturn]] void run_within_plan(const Source& source, int64_t file_bytes,
                                  const DecodeOptions& decode, int64_t least) {
  const auto device = make_host_device();
  const auto stream = device->make_stream();
  LoaderOptions options = steady_options(2);
  options.batch_size = 2;
  options.ring_depth = 2;
  options.feed.decode = decode;
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // reset the peak
  const int64_t before = process_bytes("VmRSS");
  Loader loader(source, crop_spec(64), {device.get()}, options);
  run(loader, *stream, 2);
  const int64_t grown = process_bytes("VmHWM") - before;
  const MemoryPlan plan = loader.memory_plan();
  const int64_t most = plan.total_bytes() + plan.frame_bytes + 2 * (3 * 2 + 2) * file_bytes;
  std::fprintf(stderr, "grew by %lld bytes, expected %lld to %lld\n", static_cast<long long>(grown),
               static_cast<long long>(least), static_cast<long long>(most));
  std::exit(::testing::Test::HasFailure() || grown < least || grown > most ? 1 : 0);
}

// All coefficients of a progressive JPEG's crop are held at once, or of the whole picture if
// libjpeg decodes it (CMYK). It has its own process, because freed memory of other tests would hide
// what this one takes.
TEST(SteadyStateDeathTest, ProgressiveImagesStayWithinThePlan) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr Size kSize = {3000, 2000};
  const auto decode_set = [&](JpegColours colours, int components, PixelPolicy pixels) {
    const std::vector<uint8_t> file =
        make_jpeg(kSize, {.colours = colours, .quality = 50, .progressive = true});
    const DecodeOptions decode = {.pixels = pixels, .max_pixels = kSize.width * kSize.height};
    run_within_plan(FakeSource({file}, 8, 2), static_cast<int64_t>(file.size()), decode,
                    2 * components * decode.max_pixels);  // one image's coefficients
  };
  using ::testing::ExitedWithCode;
  EXPECT_EXIT(decode_set(JpegColours::ycc, 3, PixelPolicy::fast), ExitedWithCode(0), "grew by");
  EXPECT_EXIT(decode_set(JpegColours::cmyk, 4, PixelPolicy::exact), ExitedWithCode(0), "grew by");
}

}  // namespace
}  // namespace stoker::testing
