// libjpeg's coefficients of a file: the oracle of the targets for entropy decoders.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

// clang-format off
#include <jpeglib.h>
// clang-format on

namespace stoker {

struct CoefficientErrors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
};

// Fills `blocks` with all blocks of each component, in rows. Returns false if libjpeg reports an
// error or a warning.
inline bool read_with_libjpeg(std::span<const uint8_t> file,
                              std::vector<std::vector<int16_t>>& blocks) {
  const auto fail = [](j_common_ptr cinfo) {
    std::longjmp(reinterpret_cast<CoefficientErrors*>(cinfo->err)->jump, 1);
  };
  jpeg_decompress_struct cinfo;
  CoefficientErrors errors;
  cinfo.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = fail;
  errors.base.emit_message = [](j_common_ptr common, int level) {
    if (level < 0) common->err->error_exit(common);
  };
  jpeg_create_decompress(&cinfo);
  if (setjmp(errors.jump) != 0) {
    jpeg_destroy_decompress(&cinfo);
    return false;
  }
  jpeg_mem_src(&cinfo, file.data(), file.size());
  jpeg_read_header(&cinfo, TRUE);
  jvirt_barray_ptr* arrays = jpeg_read_coefficients(&cinfo);
  for (int c = 0; c < cinfo.num_components; ++c) {
    const jpeg_component_info& info = cinfo.comp_info[c];
    auto& component = blocks.emplace_back();
    for (JDIMENSION row = 0; row < info.height_in_blocks; ++row) {
      JBLOCKARRAY line = cinfo.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&cinfo),
                                                       arrays[c], row, 1, FALSE);
      for (JDIMENSION b = 0; b < info.width_in_blocks; ++b) {
        component.insert(component.end(), line[0][b], line[0][b] + DCTSIZE2);
      }
    }
  }
  jpeg_destroy_decompress(&cinfo);
  return true;
}

}  // namespace stoker
