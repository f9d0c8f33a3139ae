#include "staging/normalise.h"

#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

#include "staging/cuda_plugin.h"
#include "staging/normalise_body.h"

namespace stoker {
namespace {

constexpr uint32_t kFp16Infinity = 0x7C00;

uint32_t bits_of(float value, PixelType type) {
  switch (type) {
    case PixelType::bf16:
      return bf16_bits(value);
    case PixelType::fp16:
      return fp16_bits(value);
    case PixelType::fp32:
      break;
  }
  return std::bit_cast<uint32_t>(value);
}

void check_normalise_options(const NormaliseOptions& options) {
  const bool sizes = options.height > 0 && options.width > 0;
  const bool channels = options.channels == 3 || options.channels == 4 || options.channels == 8;
  if (!sizes || !channels) {
    throw std::invalid_argument("Normaliser: " + std::to_string(options.height) + " x " +
                                std::to_string(options.width) + " pixels to " +
                                std::to_string(options.channels) +
                                " channels; sizes must be positive, channels 3, 4 or 8");
  }
  for (float deviation : options.stddev) {
    if (!(deviation > 0)) {
      throw std::invalid_argument("Normaliser: a deviation is " + std::to_string(deviation) +
                                  "; it must be positive");
    }
  }
}

template <typename Bits>
void run_normalise_twin(const NormaliseArgs& args) {
  const auto table = [&](int channel, uint8_t pixel) {
    return static_cast<Bits>(args.table[static_cast<size_t>(channel)][pixel]);
  };
  auto* out = static_cast<Bits*>(args.out);
  const int64_t pixels = args.rows * args.plane;
  const bool nchw = args.order == PixelOrder::nchw;
  const int64_t quads = normalise_quads(args);
  for (int64_t quad = 0; quad < quads; ++quad) {
    if (nchw) {
      expand_quad_nchw(args.images, out, quad, args.plane, args.channels, table);
    } else if (args.channels == 3) {
      expand_quad_nhwc<Bits, 3>(args.images, out, quad, table);
    } else if (args.channels == 4) {
      expand_quad_nhwc<Bits, 4>(args.images, out, quad, table);
    } else {
      expand_quad_nhwc<Bits, 8>(args.images, out, quad, table);
    }
  }
  for (int64_t pixel = quads * 4; pixel < pixels; ++pixel) {
    expand_pixel(args.images, out, pixel, args.plane, args.channels, nchw, table);
  }
}

void normalise_in_stream(Stream& stream, const NormaliseArgs& args) {
  stream.call([args] { normalise_on_host(args); });
}

}  // namespace

uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

uint16_t fp16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000U;
  const float size = std::fabs(value);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | kFp16Infinity | 0x200U);
  if (size >= 65520.0F) return static_cast<uint16_t>(sign | kFp16Infinity);
  if (size < 0x1p-14F) {  // steps of 2^-24; nearbyint() rounds ties to even
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::nearbyint(size * 0x1p24F)));
  }
  uint32_t rounded = (bits & 0x7FFFFFFFU) + 0xFFFU + ((bits >> 13) & 1U);
  return static_cast<uint16_t>(sign | ((rounded >> 13) - ((127U - 15U) << 10)));
}

void normalise_on_host(const NormaliseArgs& args) {
  if (args.type == PixelType::fp32) {
    run_normalise_twin<uint32_t>(args);
  } else {
    run_normalise_twin<uint16_t>(args);
  }
}

size_t value_bytes(PixelType type) { return type == PixelType::fp32 ? 4 : 2; }

NormaliseArgs normalise_args(const NormaliseOptions& options) {
  check_normalise_options(options);
  NormaliseArgs args;
  args.plane = static_cast<int64_t>(options.height) * options.width;
  args.channels = options.channels;
  args.type = options.type;
  args.order = options.order;
  for (size_t channel = 0; channel < 3; ++channel) {
    for (size_t pixel = 0; pixel < 256; ++pixel) {
      // In this order in fp32, like the CPU engine.
      const float value =
          (static_cast<float>(pixel) / 255.0F - options.mean[channel]) / options.stddev[channel];
      args.table[channel][pixel] = bits_of(value, options.type);
    }
  }
  return args;
}

Normaliser::Normaliser(Device& device, const NormaliseOptions& options)
    : kernel_(normalise_in_stream), args_(normalise_args(options)) {
  if (device.cuda_ordinal() < 0) return;
  std::string problem;
  const CudaPlugin* plugin = open_cuda_plugin(problem);
  if (plugin == nullptr) throw std::runtime_error(device.name() + ": " + problem);
  kernel_ = plugin->normalise;
}

size_t Normaliser::row_bytes() const {
  return static_cast<size_t>(args_.plane) * static_cast<size_t>(args_.channels) *
         value_bytes(args_.type);
}

void Normaliser::run(Stream& stream, const uint8_t* images, void* out, int rows) const {
  NormaliseArgs args = args_;
  args.images = images;
  args.out = out;
  args.rows = rows;
  if (rows > 0) kernel_(stream, args);
}

}  // namespace stoker
