// One axis of the planar resize: for every output pixel, which samples of a colour plane are summed
// and with which weights.
//
// The plane may have fewer samples than the image has pixels (subsampled chroma). Then the weights
// of the pixels are carried over to the samples from which libjpeg's upsampling would make the
// pixels. So the result is that of "upsample, then resize", without the upsampling.
#pragma once

#include <cstdint>
#include <vector>

namespace stoker {

enum class Upsampling : uint8_t {
  replicate,  // every pixel has the value of its sample
  triangle,   // 3/4 of its sample, 1/4 of the nearer neighbour; factor 2 only ("fancy")
};

// Determines an axis; equal keys give equal axes.
struct PlanarAxisKey {
  int crop_begin = 0;  // pixels of the image
  int crop_size = 0;
  int resized = 0;  // pixels that the crop is resized to
  int window_begin = 0;
  int window_count = 0;   // output pixels [begin, begin + count) of `resized`
  bool mirrored = false;  // output pixel 0 is the window's last one
  int factor = 1;         // pixels per sample
  Upsampling upsampling = Upsampling::replicate;
  int plane_size = 0;  // samples
  bool operator==(const PlanarAxisKey&) const = default;
};

// Outputs are handled in groups of eight; entries past the last output repeat it.
inline constexpr int kAxisGroup = 8;

// The most samples per output. CropDecoder refuses more, because its weights have 15 bits.
inline constexpr int kMaxAxisTaps = 128;

// Weights are written four at a time, so up to this many are written after the last row.
inline constexpr int kAxisSlack = 3;

struct PlanarAxis {
  PlanarAxisKey key;
  int padded_count = 0;  // key.window_count, up to a multiple of kAxisGroup
  int source_begin = 0;  // samples of the plane that any output needs
  int source_end = 0;
  int last_pixel_end = 0;  // one past the last pixel of the image that Pillow's resize reads
  int max_taps = 0;
  std::vector<int32_t> first;       // (padded_count): the first sample summed
  std::vector<int32_t> taps;        // (padded_count): samples summed, >= 1
  std::vector<int32_t> group_taps;  // (padded_count / kAxisGroup): the most in the group
  // (padded_count, max_taps): 15 fractional bits, 0 past `taps`; twice in an int32, because a
  // 32-bit broadcast is cheaper. They sum to 2^15 (a single tap of 1.0 is 2^15 - 1).
  std::vector<int32_t> weights;

  const int32_t* weights_of(int i) const { return weights.data() + int64_t{i} * max_taps; }
  int64_t scratch_bytes() const;
};

// Rebuilds `axis` unless it is already the axis of `key`. Returns false if there are too many taps.
bool build_planar_axis(const PlanarAxisKey& key, PlanarAxis& axis);

// The first step of both builders: sets max_taps and allocates everything.
bool lay_out_planar_axis(const PlanarAxisKey& key, PlanarAxis& axis);

// The plain twin, which makes one output after the other; it rebuilds the axis on every call.
bool build_planar_axis_reference(const PlanarAxisKey& key, PlanarAxis& axis);

}  // namespace stoker
