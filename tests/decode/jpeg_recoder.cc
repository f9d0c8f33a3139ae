#include "tests/decode/jpeg_recoder.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

// clang-format off
#include <jpeglib.h>
// clang-format on

namespace stoker {
namespace {

// A decompressor that has read the header; libjpeg's default error handler ends the test program.
struct Reader {
  explicit Reader(std::span<const uint8_t> jpeg) {
    cinfo.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&cinfo);
    jpeg_mem_src(&cinfo, jpeg.data(), jpeg.size());
    jpeg_read_header(&cinfo, TRUE);
  }
  ~Reader() { jpeg_destroy_decompress(&cinfo); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  jpeg_decompress_struct cinfo;
  jpeg_error_mgr errors;
};

JBLOCKARRAY block_row(Reader& reader, jvirt_barray_ptr* arrays, int c, JDIMENSION row) {
  auto* common = reinterpret_cast<j_common_ptr>(&reader.cinfo);
  return reader.cinfo.mem->access_virt_barray(common, arrays[c], row, 1, FALSE);
}

std::vector<jpeg_scan_info> script_of(const std::vector<ScanOfBits>& scans) {
  std::vector<jpeg_scan_info> script;
  for (const ScanOfBits& scan : scans) {
    jpeg_scan_info& info = script.emplace_back();
    info = {
        static_cast<int>(scan.components.size()), {}, scan.first, scan.last, scan.high, scan.low};
    std::copy(scan.components.begin(), scan.components.end(), info.component_index);
  }
  return script;
}

}  // namespace

std::vector<uint8_t> recode_jpeg(std::span<const uint8_t> jpeg, const Recoding& recoding) {
  Reader reader(jpeg);
  jvirt_barray_ptr* arrays = jpeg_read_coefficients(&reader.cinfo);
  jpeg_compress_struct out;
  jpeg_error_mgr errors;
  out.err = jpeg_std_error(&errors);
  jpeg_create_compress(&out);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&out, &memory, &size);
  jpeg_copy_critical_parameters(&reader.cinfo, &out);
  out.restart_interval = static_cast<unsigned>(recoding.restart_interval);
  out.optimize_coding = recoding.own_tables ? TRUE : FALSE;
  const std::vector<jpeg_scan_info> script = script_of(recoding.scans);
  if (!script.empty()) {
    out.scan_info = script.data();
    out.num_scans = static_cast<int>(script.size());
  }
  jpeg_write_coefficients(&out, arrays);
  jpeg_finish_compress(&out);
  jpeg_destroy_compress(&out);
  std::vector<uint8_t> bytes(memory, memory + size);
  std::free(memory);
  return bytes;
}

Coefficients read_coefficients(std::span<const uint8_t> jpeg) {
  Reader reader(jpeg);
  jvirt_barray_ptr* arrays = jpeg_read_coefficients(&reader.cinfo);
  Coefficients all(static_cast<size_t>(reader.cinfo.num_components));
  for (int c = 0; c < reader.cinfo.num_components; ++c) {
    const jpeg_component_info& info = reader.cinfo.comp_info[c];
    for (JDIMENSION row = 0; row < info.height_in_blocks; ++row) {
      JBLOCKARRAY blocks = block_row(reader, arrays, c, row);
      auto& to = all[static_cast<size_t>(c)].emplace_back();
      for (JDIMENSION b = 0; b < info.width_in_blocks; ++b) {
        to.emplace_back(blocks[0][b], blocks[0][b] + DCTSIZE2);
      }
    }
  }
  return all;
}

Samples read_samples(std::span<const uint8_t> jpeg) {
  Reader reader(jpeg);
  jpeg_decompress_struct& cinfo = reader.cinfo;
  cinfo.raw_data_out = TRUE;
  cinfo.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&cinfo);
  const size_t count = static_cast<size_t>(cinfo.num_components);
  Samples all(count);
  while (cinfo.output_scanline < cinfo.output_height) {
    std::vector<std::vector<JSAMPROW>> pointers(count);
    std::vector<JSAMPARRAY> planes;
    std::vector<size_t> begins;
    for (size_t c = 0; c < count; ++c) {
      const jpeg_component_info& info = cinfo.comp_info[c];
      begins.push_back(all[c].size());
      for (int r = 0; r < 8 * info.v_samp_factor; ++r) {
        all[c].emplace_back(size_t{8} * (info.width_in_blocks + 16));
      }
    }
    for (size_t c = 0; c < count; ++c) {
      for (size_t r = begins[c]; r < all[c].size(); ++r) pointers[c].push_back(all[c][r].data());
      planes.push_back(pointers[c].data());
    }
    jpeg_read_raw_data(&cinfo, planes.data(), static_cast<JDIMENSION>(8 * cinfo.max_v_samp_factor));
  }
  for (size_t c = 0; c < count; ++c) {
    for (auto& row : all[c]) row.resize(size_t{8} * cinfo.comp_info[c].width_in_blocks);
    all[c].resize(size_t{8} * cinfo.comp_info[c].height_in_blocks);
  }
  jpeg_finish_decompress(&cinfo);
  return all;
}

}  // namespace stoker
