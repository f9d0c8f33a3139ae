// The entropy decoder against jpeg_read_coefficients: every file that both decode without an error
// must give the same coefficients.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <vector>

// clang-format off
#include <jpeglib.h>
// clang-format on

#include "decode/aligned_buffer.h"
#include "decode/jpeg/scan_reader.h"

namespace stoker {
namespace {

struct Errors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
};

void fail(j_common_ptr cinfo) { std::longjmp(reinterpret_cast<Errors*>(cinfo->err)->jump, 1); }
void on_message(j_common_ptr cinfo, int level) {
  if (level < 0) fail(cinfo);
}

// Returns all blocks of component 0, in rows. Returns false if libjpeg reports an error or a
// warning.
bool read_with_libjpeg(std::span<const uint8_t> file, std::vector<int16_t>& blocks) {
  jpeg_decompress_struct cinfo;
  Errors errors;
  cinfo.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = fail;
  errors.base.emit_message = on_message;
  jpeg_create_decompress(&cinfo);
  if (setjmp(errors.jump) != 0) {
    jpeg_destroy_decompress(&cinfo);
    return false;
  }
  jpeg_mem_src(&cinfo, file.data(), file.size());
  jpeg_read_header(&cinfo, TRUE);
  jvirt_barray_ptr* arrays = jpeg_read_coefficients(&cinfo);
  const jpeg_component_info& info = cinfo.comp_info[0];
  for (JDIMENSION row = 0; row < info.height_in_blocks; ++row) {
    JBLOCKARRAY line = cinfo.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&cinfo),
                                                     arrays[0], row, 1, FALSE);
    for (JDIMENSION b = 0; b < info.width_in_blocks; ++b) {
      blocks.insert(blocks.end(), line[0][b], line[0][b] + DCTSIZE2);
    }
  }
  jpeg_destroy_decompress(&cinfo);
  return true;
}

bool read_with_ours(std::span<const uint8_t> file, const BaselineJpeg& jpeg,
                    std::vector<int16_t>& blocks) {
  static HuffmanCache tables;
  static ScanReader reader;
  if (!reader.open(file, jpeg, tables) || !reader.begin()) return false;
  const auto in_blocks = [](int samples) { return (samples + 7) / 8; };
  const JpegComponent& first = jpeg.components[0];
  for (int row = 0; row < jpeg.mcus_down; ++row) {
    std::vector<AlignedBuffer<int16_t>> lines(12);
    for (int c = 0; c < jpeg.component_count; ++c) {
      for (int r = 0; r < jpeg.components[c].down; ++r) {
        const size_t count = static_cast<size_t>(jpeg.mcus_across * jpeg.components[c].across + 4);
        reader.set_coefficients(c, r, lines[static_cast<size_t>(4 * c + r)].grow(count * 64));
      }
    }
    if (!reader.store(0, jpeg.mcus_across)) return false;
    for (int r = 0; r < first.down && row * first.down + r < in_blocks(first.size.height); ++r) {
      for (int b = 0; b < in_blocks(first.size.width); ++b) {
        const int16_t* block =
            lines[static_cast<size_t>(r)].data() + coefficient_offset(static_cast<size_t>(b));
        for (int i = 0; i < kBlockSize; ++i) blocks.push_back(block[i / 8 * 32 + i % 8]);
      }
    }
  }
  return true;
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  const std::span<const uint8_t> file(data, size);
  BaselineJpeg jpeg;
  if (!parse_baseline(file, jpeg) || int64_t{jpeg.size.width} * jpeg.size.height > 1 << 18)
    return 0;
  std::vector<int16_t> ours, theirs;
  if (!read_with_ours(file, jpeg, ours)) return 0;
  if (read_with_libjpeg(file, theirs) && ours != theirs) std::abort();
  return 0;
}
