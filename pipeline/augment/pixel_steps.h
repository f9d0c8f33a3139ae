// The kinds of steps that stages are made of, and functions that append them to the drawing of a
// row. Nearly all are Pillow's, bit for bit.
#pragma once

#include <optional>

#include "decode/crop_spec.h"
#include "decode/pixel/warp.h"
#include "decode/pixel/warp_matrix.h"
#include "pipeline/augment/draws.h"

namespace stoker {

// The decoder can do the first four while it decodes (program.h): Image.crop, Image.resize,
// Image.transpose and ImageOps.expand.

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
// REQUIRES: padding <= size - 1 for reflect, <= size for symmetric. Pictures on which something
// lies are padded with a constant only; otherwise the drawing fails.
void add_pad(Draws& draws, const std::array<int, 4>& sides, Padding padding, Rgb fill);

Box crop_box(const PixelStep& step);

// Colours: ImageEnhance and ImageOps (decode/pixel/colour.h says how each is computed).

// One number: the factor. 1 leaves the image as it is; 0 for hue.
extern const PixelKind kBrightnessStep, kContrastStep, kSaturationStep, kHueStep, kSharpnessStep;
// No number.
extern const PixelKind kGrayscaleStep, kInvertStep, kEqualizeStep, kAutocontrastStep;
extern const PixelKind kHsvStep;        // hue, saturation, value: of HsvChange
extern const PixelKind kPermuteStep;    // red, green, blue: the channel that each is made of
extern const PixelKind kPosterizeStep;  // bits that are kept, 0 to 8
extern const PixelKind kSolarizeStep;   // bytes of at least this threshold are inverted
extern const PixelKind kFillStep;       // x, y, width, height: inside the image; fill

void add_fill(Draws& draws, Box box, Rgb colour);
// Does what kFillStep does.
void fill_box(MutableImageView image, Box box, Rgb colour);

// Pixels moved by a matrix: Image.transform.

inline constexpr const char* kInterpolationNames[] = {"nearest", "bilinear", "bicubic"};

extern const PixelKind kAffineStep;       // a, b, c, d, e, f; choice: Interpolation; fill
extern const PixelKind kPerspectiveStep;  // eight coefficients; the same
extern const PixelKind kTurnStep;         // quarters of a circle, counterclockwise, 1 to 3

struct WarpOptions {
  Interpolation interpolation = Interpolation::nearest;
  Rgb fill{};
};

// Append a step, or none that would change nothing. Output pixel (x, y) shows the input at the
// matrix times (x + 1/2, y + 1/2, 1).
void add_affine(Draws& draws, const std::array<double, 6>& matrix, const WarpOptions& options);
// Image.rotate: counterclockwise, about the centre or a point. `expand`: the image grows to hold
// all of it.
void add_rotation(Draws& draws, double degrees, const WarpOptions& options, bool expand = false,
                  std::optional<Point> center = {});
void add_perspective(Draws& draws, const std::array<double, 8>& coefficients,
                     const WarpOptions& options);

// Boxes alone (Motion says what is done): no pixel changes.

extern const PixelKind kKeepCentersStep;    // x, y, width, height
extern const PixelKind kClampBoxesStep;     // no number
extern const PixelKind kSanitizeBoxesStep;  // min_size, min_area, min_visibility
extern const PixelKind kDropEmptyStep;      // no number

// AugMix, which blends an image with changed copies of it. These stand around the steps of each
// copy: begin, then each copy's steps and "blend", then end. Only program.h runs them. The steps
// between keep the image's size. What lies on the image cannot follow copies that move.

extern const PixelKind kBlendBeginStep;  // weight of the image itself
extern const PixelKind kBlendStep;       // weight of the copy as it is now; the image comes back
extern const PixelKind kBlendEndStep;    // the sum, cut off to bytes
// In place of the end: the sum, cut off to bytes, is put over the image with this weight by
// Pillow's Image.blend.
extern const PixelKind kBlendOverStep;

}  // namespace stoker
