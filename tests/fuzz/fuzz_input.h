// The input format of the fuzz targets: eight bytes select the crop, the rest is the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "decode/crop_spec.h"

namespace stoker {

inline constexpr size_t kFuzzHeader = 8;

struct FuzzInput {
  CropSpec spec;  // a crop of the image
  std::span<const uint8_t> file;
};

inline FuzzInput read_fuzz_input(const uint8_t* data, size_t size, Size image) {
  const auto part = [&](int i, int of) { return 1 + data[i] * (of - 1) / 255; };
  FuzzInput input;
  CropSpec& spec = input.spec;
  spec.crop.width = part(0, image.width);
  spec.crop.height = part(1, image.height);
  spec.crop.x = part(2, image.width - spec.crop.width + 1) - 1;
  spec.crop.y = part(3, image.height - spec.crop.height + 1) - 1;
  spec.resized = {1 + data[4] % 64, 1 + data[5] % 64};
  spec.filter = static_cast<Filter>((data[4] / 64 * 4 + data[5] / 64) % kFilterCount);
  if (data[6] % 4 == 0) spec.resized = {spec.crop.width, spec.crop.height};
  spec.window.width = part(6, spec.resized.width);
  spec.window.height = part(7, spec.resized.height);
  spec.flip = data[7] % 2 != 0;
  input.file = {data + kFuzzHeader, size - kFuzzHeader};
  return input;
}

}  // namespace stoker
