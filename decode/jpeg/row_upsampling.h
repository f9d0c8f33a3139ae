// What libjpeg does to bring the rows of a subsampled component to full height, said of one row of
// pixels: which rows of samples it is made from, and how the result is rounded. Values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/jpeg/headers.h"
#include "decode/resize/planar_axis.h"

namespace stoker {

// "Fancy" upsampling by two where libjpeg does that, else replication.
struct ComponentUpsampling {
  Upsampling across = Upsampling::replicate;
  Upsampling down = Upsampling::replicate;
};
ComponentUpsampling upsampling_of(const BaselineJpeg& jpeg, const JpegComponent& component);

// Columns or rows, of samples or of pixels: [begin, end).
struct IndexRange {
  int begin = 0;
  int end = 0;
};

// The samples, of `size` in all, that some pixels are made from; `factor` pixels per sample.
IndexRange samples_of(IndexRange pixels, int factor, Upsampling upsampling, int size);

// A row of pixels: 3/4 of the near row of samples, 1/4 of the far one; `near` alone if they are the
// same.
struct RowPair {
  const int16_t* near = nullptr;
  const int16_t* far = nullptr;
};

// The rows of one component.
struct PlaneRows {
  const int16_t* rows = nullptr;
  ptrdiff_t stride = 0;  // in values
  int first = 0;         // which row of the component lies at `rows`
  int height = 0;        // rows of the component
  int factor = 1;        // rows of pixels per row of samples
  Upsampling upsampling = Upsampling::replicate;

  // One past the last row of pixels that the first `count` rows here are enough for, whether more
  // follow or not.
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

// Chroma becomes (value + bias) & mask, which rounds 7 fractional bits to whole numbers as
// libjpeg's upsampling does: exact halves go now up, now down. `bias` is of even and odd outputs.
// Right only where no resize came before.
struct ChromaRounding {
  int32_t bias = 0;  // two 16-bit lanes
  int32_t mask = -1;
};

// Of the chroma of pixel row `y`, where even outputs lie at even (or odd) columns of pixels.
ChromaRounding chroma_rounding(const ComponentUpsampling& upsampling, bool even_is_even, int y);

}  // namespace stoker
