// Augmentation in two separate halves: draw_augmentation() decides everything from a RandomKey
// (pure, recorded with the row); Augmenter applies a draw to pixels, in this order: crop and
// resize, shift, flip, colour jitter, cutout, and then the user's own operations. Nothing else in
// stoker is random about pixels.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/crop_spec.h"
#include "decode/image.h"
#include "decode/image_decoder.h"
#include "decode/pixel_ops.h"
#include "pipeline/random_key.h"

namespace stoker {

enum class CropMode : uint8_t {
  random_resized,  // RandomResizedCrop as torchvision: area scale, log-uniform ratio, 10 tries,
                   // then centre
  resize_center,   // Resize(short side) + CenterCrop(output) as torchvision
  pad_random,  // the whole image (resized to the output if needed), shifted by up to `pad` pixels
  whole,       // the whole image resized to the output
};
enum class FlipMode : uint8_t {
  none,
  random,       // each (epoch, sample) with probability 1/2
  alternating,  // random in epoch 0, then the opposite every epoch (airbench94, Jordan 2024,
                // sec. 3.6)
};

// A user's own operation on finished rows. `apply` may change the row, (output.height,
// output.width, 3) u8, in any way; all its randomness must come from `random`, whose draws belong
// to this operation alone. Threads: called from all workers at once, so it keeps no state. An
// exception from it makes the row a bad sample. open_operation() (operation_plugin.h) loads one
// from a shared library.
struct PixelOperation {
  // Printable, without spaces, unique; part of the fingerprint and of the draws. It contains the
  // parameters too ("solarize,p=0.5"): change it whenever the pixels change.
  std::string name;
  std::function<void(MutableImageView row, const RandomKey& random)> apply;
};

struct AugmentSpec {
  Size output = {};  // pixels of every row
  CropMode crop = CropMode::resize_center;
  double scale_min = 0.08, scale_max = 1.0;             // random_resized: share of the area
  double ratio_min = 3.0 / 4.0, ratio_max = 4.0 / 3.0;  // random_resized: width / height
  // resize_center: short side in pixels, at least the output's longer one; 0 = that * 256 / 224
  int resize_short = 0;
  Filter filter = Filter::bilinear;
  int pad = 0;  // pad_random: pixels
  PadMode pad_mode = PadMode::reflect;
  FlipMode flip = FlipMode::none;
  int cutout = 0;  // side of a square that lies inside the output, pixels; 0 = none
  uint8_t cutout_value = 127;
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;  // ColorJitter's arguments; 0 = off
  std::vector<PixelOperation> operations = {};                   // last, in this order

  // Throws std::invalid_argument naming the field and its value.
  void validate() const;
  std::string describe() const;  // one line, canonical: part of the fingerprint
};

// All random decisions about one row. Trivially copyable: it travels with the batch as the row's
// note.
struct AugmentDraw {
  Box crop;         // in source pixels
  Size resized;     // the crop is resized to this
  Box window;       // in pixels of `resized`
  int shift_x = 0;  // pad_random: output(x) = input(x + shift)
  int shift_y = 0;
  bool flip = false;
  Box cutout;  // in output pixels; empty = none
  bool jitter = false;
  uint8_t jitter_order[4] = {0, 1, 2, 3};  // 0 brightness, 1 contrast, 2 saturation, 3 hue
  float jitter_factor[4] = {1, 1, 1, 0};
};

// Returns the short side in pixels for resize_center, with the default filled in.
int short_side(const AugmentSpec& spec);

// Draws the augmentation of one sample. `source` is the image's size, sides >= 1. `spec` has been
// validated. Throws nothing. A pure function: the result is the same from any thread and in any
// order.
AugmentDraw draw_augmentation(const AugmentSpec& spec, Size source, uint64_t seed, int64_t epoch,
                              int64_t sample);

// One per worker, reused; keeps its scratch. Threads: one at a time.
class Augmenter {
 public:
  // Throws what AugmentSpec::validate() throws.
  Augmenter(const AugmentSpec& spec, const DecodeOptions& decode);
  ~Augmenter();
  Augmenter(const Augmenter&) = delete;
  Augmenter& operator=(const Augmenter&) = delete;

  // Reads the header, draws, decodes and applies. `out` is (output.height, output.width, 3).
  // `seek_index`: as ImageDecoder::decode.
  DecodeStatus file_row(std::span<const uint8_t> bytes, uint64_t seed, int64_t epoch,
                        int64_t sample, MutableImageView out, Size& source, AugmentDraw& draw,
                        std::span<const uint8_t> seek_index = {});
  // The same for raw pixels: planar or (height, width, 3). `next`: the bytes of the row after this
  // one, which are prefetched into the cache; may be empty.
  DecodeStatus raw_row(std::span<const uint8_t> bytes, bool planar, Size size, uint64_t seed,
                       int64_t epoch, int64_t sample, MutableImageView out, AugmentDraw& draw,
                       std::span<const uint8_t> next = {});
  SeekUse seek_use() const;  // since construction
  int64_t scratch_bytes() const;
  // For measurements: the time when the last file_row() had its pixels cropped and resized, but not
  // yet shifted, mirrored and coloured; steady clock, and the thread's CPU time.
  struct Marks {
    int64_t decoded_ns = 0, decoded_cpu_ns = 0;
  };
  void keep_marks(bool keep);
  const Marks& marks() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
