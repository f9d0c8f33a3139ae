// The README's C++ example, compiled and run as it stands there.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "pipeline/loader.h"
#include "pipeline/source/synthetic_source.h"

namespace {

using Step = std::function<void(const uint8_t*, const int32_t*, const float*, stoker::Stream&)>;

// clang-format off
// [example]
void feed(const stoker::Source& source, const Step& my_step) {
  auto device = stoker::make_host_device();
  auto stream = device->make_stream();
  stoker::AugmentSpec augment{.output = {224, 224},
                              .crop = stoker::CropMode::random_resized,
                              .flip = stoker::FlipMode::random};
  stoker::Loader loader(source, augment, {device.get()}, {.batch_size = 256, .seed = 1, .epochs = 2});
  while (stoker::DeviceBatch batch = loader.next(0, *stream)) {
    my_step(batch.images(), batch.labels(), batch.weights(), *stream);  // queues work on the stream
  }
}
// [example]
// clang-format on

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ReadmeExample, FeedsEveryStepOfBothEpochs) {
  const auto source = stoker::make_synthetic_source(300, {64, 48}, 10, 1);
  int steps = 0;
  double weights = 0;
  feed(*source,
       [&](const uint8_t*, const int32_t*, const float* row_weights, stoker::Stream& stream) {
         ++steps;
         stream.call([&weights, row_weights] {
           for (int row = 0; row < 256; ++row) weights += row_weights[row];
         });
       });
  EXPECT_EQ(steps, 4);  // 300 samples are two batches of 256 rows, twice
  EXPECT_EQ(weights, 600);
}

TEST(ReadmeExample, StandsInTheReadme) {
  const std::string source = read_text(STOKER_SOURCE_DIR "/tests/pipeline/readme_example_test.cc");
  const std::string mark = "// [example]\n";
  const size_t begin = source.find(mark) + mark.size();
  const std::string example = source.substr(begin, source.find(mark, begin) - begin);
  EXPECT_NE(read_text(STOKER_SOURCE_DIR "/README.md").find(example), std::string::npos)
      << "README.md does not show:\n"
      << example;
}

}  // namespace
