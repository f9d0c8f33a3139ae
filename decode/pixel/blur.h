// Gaussian blurs of finished pixels: torchvision's, which convolves, and Pillow's, which runs three
// box filters. Views are (height, width, 3) u8 of one size with any stride, and do not overlap.
// Stateless but for the scratch.
#pragma once

#include "decode/image.h"
#include "decode/pixel/scratch.h"

namespace stoker {

// torchvision.transforms.v2.functional.gaussian_blur on a PIL image: a convolution of floats with
// the edge reflected (without repeating it), rounded to the nearest, halves to even. Kernels are
// odd and at least 1, with kernel_x / 2 < width and kernel_y / 2 < height. Sigmas are positive, in
// pixels; numbers outside 1e-6..1e6 are taken as the nearest of these.
//
// The last bits of torch's weights depend on its version and on the instruction set that it runs
// on. These are the bytes of current versions with AVX-512, on every machine (README.md says how
// many bytes of others differ by one).
void gaussian_blur(ImageView in, int kernel_x, int kernel_y, double sigma_x, double sigma_y,
                   MutableImageView out, PixelScratch& scratch);

// PIL.ImageFilter.GaussianBlur(radius), byte for byte: three extended box filters per direction
// with the variance of the Gaussian (Gwosdek et al., "Theoretical foundations of Gaussian
// convolution by extended box filtering", 2011; Pillow's BoxBlur.c). The radius is the standard
// deviation in pixels, 0 to 10,000; the ends stand for numbers outside.
void pillow_gaussian_blur(ImageView in, double radius, MutableImageView out, PixelScratch& scratch);

}  // namespace stoker
