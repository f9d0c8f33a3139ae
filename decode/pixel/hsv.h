// The colour augmentation of the YOLO family, in OpenCV's 8-bit HSV, in place. The bytes are those
// of cv2.cvtColor(RGB2HSV), cv2.LUT and cv2.cvtColor(HSV2RGB) of OpenCV 4 and 5 on x86-64 with
// AVX2 or AVX-512, for the pixels that OpenCV's vectors take: it rounds the last ones of a row
// whose length is no multiple of a vector's, and truncates all others.
//
// A stateless function on (height, width, 3) u8 views with any stride. No finite number is
// undefined behaviour.
#pragma once

#include "decode/image.h"

namespace stoker {

struct HsvChange {
  double hue = 0;         // what is added, in colour circles, -1 to 1
  double saturation = 1;  // a factor, >= 0
  double value = 1;       // a factor, >= 0
};

// As RandomHSV of Ultralytics 8.3.79 and later with these numbers. Even those that change nothing
// convert to 8-bit HSV and back, which changes pixels a little.
void adjust_hsv(MutableImageView image, const HsvChange& change);

}  // namespace stoker
