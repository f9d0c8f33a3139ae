// The operations of decode/pixel on colours, as one obvious loop each, with Pillow's own
// arithmetic.
#pragma once

#include "decode/image.h"

namespace stoker {

void brightness_reference(MutableImageView image, double factor);
void contrast_reference(MutableImageView image, double factor);
void saturation_reference(MutableImageView image, double factor);
void hue_reference(MutableImageView image, double factor);
void sharpness_reference(MutableImageView image, double factor);
void grayscale_reference(MutableImageView image);
void invert_reference(MutableImageView image);
void posterize_reference(MutableImageView image, int bits);
void solarize_reference(MutableImageView image, double threshold);
void gamma_reference(MutableImageView image, double gamma);
void equalize_reference(MutableImageView image);
void autocontrast_reference(MutableImageView image);

}  // namespace stoker
