// Describes how libjpeg brings the rows of a subsampled component to full height: for one row of
// pixels, the rows of samples that it is made from, and how the result is rounded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/jpeg/headers.h"
#include "decode/resize/planar_axis.h"

namespace stoker {

// "Fancy" upsampling by two where libjpeg uses it, else replication.
struct ComponentUpsampling {
  Upsampling across = Upsampling::replicate;
  Upsampling down = Upsampling::replicate;
};
ComponentUpsampling upsampling_of(const JpegFrame& jpeg, const JpegComponent& component);

// Columns or rows, of samples or of pixels: [begin, end).
struct IndexRange {
  int begin = 0;
  int end = 0;
};

// Returns the samples (of `size`) that some pixels are made from; `factor` pixels per sample.
IndexRange samples_of(IndexRange pixels, int factor, Upsampling upsampling, int size);

// A row of pixels: 3/4 of the near row of samples, 1/4 of the far one; only `near` if they are the
// same.
struct RowPair {
  const int16_t* near = nullptr;
  const int16_t* far = nullptr;
};

// The rows of one component.
struct PlaneRows {
  const int16_t* rows = nullptr;
  ptrdiff_t stride = 0;  // in values
  int first = 0;         // the row of the component that is at `rows`
  int height = 0;        // rows of the component
  int factor = 1;        // rows of pixels per row of samples
  Upsampling upsampling = Upsampling::replicate;

  // Returns one past the last row of pixels that can be made from the first `count` rows here,
  // whether more rows follow or not.
  int pixels_from(int count) const;

  RowPair row_of_pixels(int y) const {
    const int near = y / factor;
    const int16_t* from = rows + (near - first) * stride;
    const int step = y % 2 != 0 ? 1 : -1;
    const bool has_far =
        upsampling == Upsampling::triangle && near + step >= 0 && near + step < height;
    return {from, has_far ? from + step * stride : from};
  }
};

// Chroma becomes (value + bias) & mask, which rounds 7 fractional bits to integers as libjpeg's
// upsampling does: exact halves are rounded up and down in turn. `bias` has a lane for even and one
// for odd outputs. Correct only if the values were not resized before.
struct ChromaRounding {
  int32_t bias = 0;  // two 16-bit lanes
  int32_t mask = -1;
};

// Returns the rounding for the chroma of pixel row `y`, if even outputs are at even (or odd)
// columns of pixels.
ChromaRounding chroma_rounding(const ComponentUpsampling& upsampling, bool even_is_even, int y);

}  // namespace stoker
