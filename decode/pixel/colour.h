// Colours of finished pixels, in place. The bytes are those of torchvision.transforms.v2.functional
// on PIL images (Pillow 9.4 to 13 give the same): PIL.ImageEnhance and PIL.ImageOps, and Pillow's
// 8-bit HSV for the hue. byte_table.h has the operations that map each byte by itself.
//
// Stateless functions on (height, width, 3) u8 views with any stride. No finite number is undefined
// behaviour; a caller checks the ranges that make sense.
#pragma once

#include <array>

#include "decode/image.h"
#include "decode/pixel/byte_table.h"
#include "decode/pixel/scratch.h"

namespace stoker {

// Factors are >= 0; 1 changes nothing.
void adjust_brightness(MutableImageView image, double factor);
// A blend with the mean grey of the image.
void adjust_contrast(MutableImageView image, double factor);
// A blend of each pixel with its grey.
void adjust_saturation(MutableImageView image, double factor);
// Turns the hue by `factor` of the colour circle, in [-0.5, 0.5]. As torchvision's, it converts to
// 8-bit HSV and back, which changes pixels a little even for 0.
void adjust_hue(MutableImageView image, double factor);

// Sets every channel to the luma of ITU-R 601: convert("L").
void grayscale(MutableImageView image);

// Sets channel i to what channel from[i] was: torchvision's permute_channels().
void permute_channels(MutableImageView image, const std::array<int, 3>& from);

void invert(MutableImageView image);
void posterize(MutableImageView image, int bits);         // 1..8 upper bits stay
void solarize(MutableImageView image, double threshold);  // inverts what is not below
void adjust_gamma(MutableImageView image, double gamma);  // >= 0

// Returns the mean luma as ImageEnhance.Contrast rounds it, 0..255: the degenerate of the table
// that adjust_contrast applies. 0 for an image without pixels.
int mean_luma(ImageView image);

// ImageOps.equalize: spreads the values of each channel so that their histogram is as even as a map
// from bytes to bytes can make it.
void equalize(MutableImageView image);

// ImageOps.autocontrast without a cutoff: stretches each channel so that its least value becomes 0
// and its most 255.
void autocontrast(MutableImageView image);

// PIL.ImageEnhance.Sharpness: blends the image with ImageFilter.SMOOTH of it, a kernel of 3 x 3
// that leaves the outermost pixels as they are. Factor 0 smooths, 1 changes nothing, more than 1
// sharpens. Any finite factor. The scratch holds three rows.
void adjust_sharpness(MutableImageView image, double factor, PixelScratch& scratch);

}  // namespace stoker
