// The steps that most stages are made of, and that the decoder can do while it decodes (program.h).
// They are Pillow's: Image.crop, Image.resize, Image.transpose, ImageOps.expand.
#pragma once

#include "decode/crop_spec.h"
#include "pipeline/augment/draws.h"

namespace stoker {

// The pixels outside an image, as torchvision's padding_mode.
enum class Padding : uint8_t { constant, edge, reflect, symmetric };
inline constexpr const char* kPaddingNames[] = {"constant", "edge", "reflect", "symmetric"};
// In the order of Filter.
inline constexpr const char* kFilterNames[kFilterCount] = {"bilinear", "bicubic", "nearest",
                                                           "box",      "hamming", "lanczos"};

extern const PixelKind kCropStep;    // x, y, width, height: lies inside the image
extern const PixelKind kResizeStep;  // width, height; choice: Filter
extern const PixelKind kFlipStep;    // left to right
extern const PixelKind kPadStep;     // left, top, right, bottom >= 0; choice: Padding; fill

// Append one of these. The box of add_crop() lies inside the image. A resize to the image's own
// size changes nothing, and is left out.
void add_crop(Draws& draws, Box box);
void add_resize(Draws& draws, Size size, Filter filter);
// REQUIRES: padding <= size - 1 for reflect, <= size for symmetric.
void add_pad(Draws& draws, const std::array<int, 4>& sides, Padding padding, Rgb fill);

Box crop_box(const PixelStep& step);

}  // namespace stoker
