#include "staging/normalise.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

namespace stoker {
namespace {

// Returns the value of an fp16 with these bits, in float64.
double fp16_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

double bf16_value(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Checks that `bits` is the nearest number of its type to `value`, and the even one of a tie.
template <typename Value>
void expect_nearest(float value, uint16_t bits, Value value_of) {
  ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << value;
  const double distance = std::fabs(value_of(bits) - static_cast<double>(value));
  for (int step : {-1, 1}) {
    const auto neighbour = static_cast<uint16_t>(bits + step);
    if ((neighbour & 0x7FFF) == 0x7FFF || std::isnan(value_of(neighbour))) continue;
    if (std::signbit(value_of(neighbour)) != std::signbit(value)) continue;
    const double other = std::fabs(value_of(neighbour) - static_cast<double>(value));
    ASSERT_LE(distance, other) << value;
    if (distance == other) {
      ASSERT_EQ(bits & 1, 0) << value << " lies between two";
    }
  }
}

std::vector<float> interesting_values() {
  std::vector<float> values = {
      0.0F, -0.0F, 1.0F, 65503.9F, 6.0e-8F, 2.9e-8F, 2.98023223876953125e-8F};
  for (uint32_t bits = 0x30000000; bits < 0x477FE000; bits += 12347) {  // 4.7e-10 .. 65504
    values.push_back(std::bit_cast<float>(bits));
    values.push_back(-std::bit_cast<float>(bits));
  }
  for (uint32_t half = 0x0001; half < 0x7BFF; half += 7) {  // exact ties between two fp16
    values.push_back(static_cast<float>(
        (fp16_value(static_cast<uint16_t>(half)) + fp16_value(static_cast<uint16_t>(half + 1))) /
        2));
  }
  return values;
}

TEST(Normalise, Fp16IsTheNearestTiesToEven) {
  for (float value : interesting_values()) expect_nearest(value, fp16_bits(value), fp16_value);
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const auto exact = static_cast<float>(fp16_value(static_cast<uint16_t>(bits)));
    ASSERT_EQ(fp16_bits(exact), bits);
  }
  EXPECT_EQ(fp16_bits(65519.99F), 0x7BFF);
  EXPECT_EQ(fp16_bits(65520.0F), 0x7C00);
  EXPECT_EQ(fp16_bits(-INFINITY), 0xFC00);
  EXPECT_TRUE(std::isnan(fp16_value(fp16_bits(NAN))));
}

TEST(Normalise, Bf16IsTheNearestTiesToEven) {
  for (float value : interesting_values()) expect_nearest(value, bf16_bits(value), bf16_value);
  EXPECT_EQ(bf16_bits(std::bit_cast<float>(0x3F808000U)), 0x3F80);
  EXPECT_EQ(bf16_bits(std::bit_cast<float>(0x3F818000U)), 0x3F82);
  EXPECT_EQ(bf16_bits(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_TRUE(std::isnan(bf16_value(bf16_bits(NAN))));
}

constexpr std::array<float, 3> kMean = {0.485F, 0.456F, 0.406F};
constexpr std::array<float, 3> kStddev = {0.229F, 0.224F, 0.225F};

// Returns one number of the output, by the definition and in float64.
double expected_value(const std::vector<uint8_t>& images, int64_t pixel, int channel) {
  if (channel >= 3) return 0;
  const double value = images[static_cast<size_t>(pixel * 3 + channel)] / 255.0;
  return (value - static_cast<double>(kMean[static_cast<size_t>(channel)])) /
         static_cast<double>(kStddev[static_cast<size_t>(channel)]);
}

double read_value(const std::byte* out, int64_t index, PixelType type) {
  if (type == PixelType::fp32) {
    float value = 0;
    std::memcpy(&value, out + index * 4, 4);
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, out + index * 2, 2);
  return type == PixelType::bf16 ? bf16_value(bits) : fp16_value(bits);
}

void check_run(const NormaliseOptions& options, int rows, size_t misalignment) {
  const int64_t plane = static_cast<int64_t>(options.height) * options.width;
  auto device = make_host_device();
  auto stream = device->make_stream();
  std::vector<uint8_t> images(static_cast<size_t>(rows * plane * 3));
  for (size_t i = 0; i < images.size(); ++i) images[i] = static_cast<uint8_t>(i * 101 + i / 256);
  const Normaliser normaliser(*device, options);
  const size_t out_bytes = static_cast<size_t>(rows) * normaliser.row_bytes();
  auto in = device->allocate(images.size() + misalignment, MemoryKind::device);
  auto out = device->allocate(out_bytes + 16, MemoryKind::device);
  std::memcpy(in->data() + misalignment, images.data(), images.size());
  std::memset(out->data(), 0xA5, out_bytes + 16);
  normaliser.run(*stream, reinterpret_cast<uint8_t*>(in->data() + misalignment), out->data(), rows);
  stream->synchronize();

  const double half_step = options.type == PixelType::fp32   ? 0
                           : options.type == PixelType::fp16 ? 0x1p-11
                                                             : 0x1p-8;  // relative to the value
  constexpr double kFp32Error = 6e-7;  // for a difference of numbers below 3
  for (int64_t pixel = 0; pixel < rows * plane; ++pixel) {
    for (int channel = 0; channel < options.channels; ++channel) {
      const int64_t row = pixel / plane;
      const int64_t index = options.order == PixelOrder::nhwc
                                ? pixel * options.channels + channel
                                : (row * options.channels + channel) * plane + pixel % plane;
      const double expected = expected_value(images, pixel, channel);
      ASSERT_NEAR(read_value(out->data(), index, options.type), expected,
                  half_step * std::fabs(expected) + kFp32Error)
          << "pixel " << pixel << ", channel " << channel;
    }
  }
  for (size_t i = out_bytes; i < out_bytes + 16; ++i) ASSERT_EQ(out->data()[i], std::byte{0xA5});
}

TEST(Normalise, EveryTypeOrderAndPaddingAgainstFloat64) {
  for (PixelType type : {PixelType::bf16, PixelType::fp16, PixelType::fp32}) {
    for (PixelOrder order : {PixelOrder::nhwc, PixelOrder::nchw}) {
      for (int channels : {3, 4, 8}) {
        for (const auto& [height, width] : {std::pair{8, 12}, std::pair{5, 7}, std::pair{1, 1}}) {
          for (size_t misalignment : {0, 1}) {
            SCOPED_TRACE(std::to_string(height) + " x " + std::to_string(width) + ", channels " +
                         std::to_string(channels));
            check_run({height, width, channels, type, order, kMean, kStddev}, 3, misalignment);
          }
        }
      }
    }
  }
}

TEST(Normalise, NonsenseIsRejected) {
  auto device = make_host_device();
  EXPECT_THROW(Normaliser(*device, {.height = 0, .width = 4}), std::invalid_argument);
  EXPECT_THROW(Normaliser(*device, {.height = 4, .width = 4, .channels = 5}),
               std::invalid_argument);
  EXPECT_THROW(Normaliser(*device, {.height = 4, .width = 4, .stddev = {1, 0, 1}}),
               std::invalid_argument);
}

TEST(Normalise, NoRows) {
  auto device = make_host_device();
  auto stream = device->make_stream();
  const Normaliser normaliser(*device, {.height = 4, .width = 4});
  EXPECT_EQ(normaliser.row_bytes(), 4U * 4 * 3 * 2);
  normaliser.run(*stream, nullptr, nullptr, 0);
  stream->synchronize();
}

}  // namespace
}  // namespace stoker
