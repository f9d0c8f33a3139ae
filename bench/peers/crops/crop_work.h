// Real JPEG files in memory, and crops of them as training and evaluation draw them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "decode/crop_spec.h"
#include "decode/image.h"

namespace stoker {

struct JpegSample {
  std::vector<uint8_t> bytes;
  Size size;
  std::vector<uint8_t> row_index, fine_index;  // seek indexes (decode/jpeg/seek_index.h)
};

// Reads up to `limit` JPEG files of the folder, evenly spaced in the order of their paths.
std::vector<JpegSample> load_jpegs(const char* folder, size_t limit);

// Replaces the files by progressive copies, which have no indexes.
void make_progressive(std::vector<JpegSample>& samples);

struct CropWork {
  const JpegSample* sample;
  CropSpec spec;
};

// Draws a crop of every sample. `mode`: eval is Resize(256) + CenterCrop(224), whole is the
// unchanged image, anything else is a random-resized crop to 224. The same round gives the same
// crops.
std::vector<CropWork> plan_crops(const std::vector<JpegSample>& samples, const std::string& mode,
                                 int round);

// Resizes `pixels` to the spec's output and returns a view of it.
MutableImageView output_of(const CropSpec& spec, std::vector<uint8_t>& pixels);

}  // namespace stoker
