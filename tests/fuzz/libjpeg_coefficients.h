// libjpeg's coefficients of a file: the oracle of the targets for entropy decoders.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/jpeg/libjpeg_session.h"

namespace stoker {

// Fills `blocks` with all blocks of each component, in rows. Returns false if libjpeg reports an
// error, or a warning that counts (JpegSession).
inline bool read_with_libjpeg(std::span<const uint8_t> file,
                              std::vector<std::vector<int16_t>>& blocks) {
  JpegSession session(file);
  jvirt_barray_ptr* arrays = nullptr;
  if (!session.read_header() || !session.guarded([&](jpeg_decompress_struct& cinfo) {
        arrays = jpeg_read_coefficients(&cinfo);
      })) {
    return false;
  }
  for (int c = 0; c < session.cinfo().num_components; ++c) {
    const jpeg_component_info& info = session.cinfo().comp_info[c];
    std::vector<int16_t>& component = blocks.emplace_back();
    for (JDIMENSION row = 0; row < info.height_in_blocks; ++row) {
      JBLOCKARRAY line = nullptr;
      const bool found = session.guarded([&](jpeg_decompress_struct& cinfo) {
        line = cinfo.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&cinfo), arrays[c], row,
                                             1, FALSE);
      });
      if (!found) return false;
      component.insert(component.end(), line[0][0], line[0][info.width_in_blocks]);
    }
  }
  return true;
}

}  // namespace stoker
