// A convolution of stride 2 that reads an image, computed as one of stride 1 that reads squares of
// 2x2 pixels as one pixel with four times the channels. The sums have the same terms, but matrix
// units get half the columns of taps with twice the channels each: of a 7x7 convolution of 3
// channels, which are padded to 8, there remain 4x4 taps of 12 channels, padded to 16.
//
// The image is shifted so that no square is cut by the padding: the folded pixel (Y, X) has the
// pixels (2Y + i - shift, 2X + j - shift) with i, j in {0, 1}, and its channel (2i + j) * read + c
// is channel c of that pixel. Outside of the image and beyond these channels everything is 0. The
// tap (2a + i, 2b + j) becomes channel (2i + j) * read + c of the tap (a, b). The last row and
// column of taps has no partner; its weight is 0, and its gradient is left out.
#pragma once

#include <optional>

#include "train/device/types.h"

namespace stoker {

struct FoldedShape {
  ConvShape plain, folded;
  Size shift;  // 0 or 1, per axis
};

// Returns how to fold a convolution of stride 2 with an odd kernel of 5x5 or more that reads 1
// or 3 channels of an image. Returns nothing for others, and if the folded one would need another
// padding at its end than at its beginning. Pure; any thread.
std::optional<FoldedShape> fold(const ConvShape& shape);

}  // namespace stoker
