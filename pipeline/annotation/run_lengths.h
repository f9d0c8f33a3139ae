// Masks as COCO's run lengths: of zeros and ones in turn, zeros first, down the columns of a
// picture with sides up to 65,535. The bits are pycocotools's. Pure functions. Threads: any. (A
// row's masks are made without run lengths, by mask_mover.)
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/image.h"

namespace stoker {

// Appends the runs of a polygon, as rleFrPoly() of pycocotools (polygon_columns.h). Points outside
// the picture are allowed.
void append_polygon_runs(std::span<const std::array<double, 2>> points, Size size,
                         std::vector<uint32_t>& runs);
// Appends the runs of a mask with a byte for each pixel, row by row, which is not 0 where the
// object is.
void append_pixel_runs(std::span<const uint8_t> pixels, Size size, std::vector<uint32_t>& runs);
// Appends the runs of a compressed text ("Zk4..."). Returns "", or what is wrong.
std::string append_text_runs(std::string_view text, std::vector<uint32_t>& runs);
// Returns "", or why these are no runs of a picture of this size: "the run lengths add up to 5
// pixels, the picture has 6".
std::string check_runs(std::span<const uint32_t> runs, Size size);

}  // namespace stoker
