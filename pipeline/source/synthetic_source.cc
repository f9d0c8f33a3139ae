#include "pipeline/source/synthetic_source.h"

#include <cmath>
#include <cstddef>
#include <numbers>
#include <stdexcept>
#include <string>

#include "pipeline/files/file_buffer.h"
#include "pipeline/random/random_key.h"

namespace stoker {
namespace {

constexpr size_t kNoisePeriod = 1 << 16;  // starting points of a sample's noise

class SyntheticSource final : public Source {
 public:
  SyntheticSource(int64_t samples, Size size, int classes, uint64_t seed)
      : info_{.size = samples, .encoding = SampleEncoding::raw_rgb, .raw_size = size},
        size_(size),
        classes_(classes),
        seed_(seed) {
    for (int c = 0; c < classes; ++c) info_.class_names.push_back("class" + std::to_string(c));
    info_.fingerprint = RandomKey(seed, samples, classes).bits(static_cast<uint32_t>(size.width)) +
                        static_cast<uint64_t>(size.height);
    make_patterns();
    noise_.resize(kNoisePeriod + image_bytes());
    for (size_t i = 0; i < noise_.size(); ++i) {
      const RandomKey key(seed_, 0, static_cast<int64_t>(i / 8));
      noise_[i] = static_cast<uint8_t>((key.bits(0) >> (i % 8 * 8)) & 63);
    }
  }

  const SourceInfo& info() const override { return info_; }
  int label(SampleId id) const override { return static_cast<int>(id % classes_); }
  std::string name(SampleId id) const override { return "synthetic:" + std::to_string(id); }
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    grow_file_buffer(buffer, image_bytes());
    const uint64_t bits = RandomKey(seed_, 1, id).bits(0);
    const size_t count = image_bytes();
    const uint8_t* __restrict pattern = patterns_.data() + static_cast<size_t>(label(id)) * count;
    const uint8_t* __restrict noise = noise_.data() + bits % kNoisePeriod;
    uint8_t* __restrict out = buffer.data();
    const auto shade = static_cast<uint8_t>((bits >> 32) % 32);
    for (size_t i = 0; i < count; ++i) {  // at most 160 + 63 + 31: never wraps
      out[i] = static_cast<uint8_t>(pattern[i] + noise[i] + shade);
    }
    bytes = {buffer.data(), image_bytes()};
    return {};
  }
  // There may be more labels than anybody wants to wait for, and they follow from two numbers.
  uint64_t labels_digest() const override { return RandomKey(0, info_.size, classes_).bits(0); }

 private:
  size_t image_bytes() const {
    return size_t{3} * static_cast<size_t>(size_.width) * static_cast<size_t>(size_.height);
  }

  // Makes a plane wave per class and channel; the class determines its direction, length and phase.
  void make_patterns() {
    for (int c = 0; c < classes_; ++c) {
      const RandomKey key(seed_, 2, c);
      for (int y = 0; y < size_.height; ++y) {
        for (int x = 0; x < size_.width; ++x) {
          for (uint32_t channel = 0; channel < 3; ++channel) {
            const double across = key.uniform(3 * channel, -2, 2) * x / size_.width;
            const double down = key.uniform(3 * channel + 1, -2, 2) * y / size_.height;
            const double phase = across + down + key.uniform(3 * channel + 2);
            const double wave = 80 + 80 * std::sin(2 * std::numbers::pi * phase);
            patterns_.push_back(static_cast<uint8_t>(wave));
          }
        }
      }
    }
  }

  SourceInfo info_;
  const Size size_;
  const int classes_;
  const uint64_t seed_;
  std::vector<uint8_t> patterns_;  // (classes, height, width, 3) u8, 0..160
  std::vector<uint8_t> noise_;     // kNoisePeriod + one image, 0..63
};

}  // namespace

std::unique_ptr<Source> make_synthetic_source(int64_t samples, Size size, int classes,
                                              uint64_t seed) {
  if (samples < 1 || size.width < 1 || size.height < 1 || classes < 1) {
    throw std::invalid_argument(
        "make_synthetic_source: samples = " + std::to_string(samples) +
        ", size = " + std::to_string(size.width) + " x " + std::to_string(size.height) +
        ", classes = " + std::to_string(classes) + ": each must be at least 1");
  }
  return std::make_unique<SyntheticSource>(samples, size, classes, seed);
}

}  // namespace stoker
