#include "tools/data/jpeg_writer.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

// jpeglib.h needs stdio's types before it.
#include <jpeglib.h>

namespace stoker {
namespace {

struct ErrorTrap {
  jpeg_error_mgr manager;  // first: libjpeg hands back a pointer to it
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = {};
};

void jump_out(j_common_ptr common) {
  auto* trap = reinterpret_cast<ErrorTrap*>(common->err);
  (*common->err->format_message)(common, trap->message);
  std::longjmp(trap->jump, 1);
}

// No object with a destructor lives between setjmp and longjmp. False: trap.message says why.
bool compress(ImageView image, int quality, ErrorTrap& trap, unsigned char** data,
              unsigned long* bytes) {
  jpeg_compress_struct encoder;
  encoder.err = jpeg_std_error(&trap.manager);
  trap.manager.error_exit = jump_out;
  if (setjmp(trap.jump) != 0) {
    jpeg_destroy_compress(&encoder);
    return false;
  }
  jpeg_create_compress(&encoder);
  jpeg_mem_dest(&encoder, data, bytes);
  encoder.image_width = static_cast<JDIMENSION>(image.width);
  encoder.image_height = static_cast<JDIMENSION>(image.height);
  encoder.input_components = 3;
  encoder.in_color_space = JCS_RGB;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, quality, TRUE);
  jpeg_start_compress(&encoder, TRUE);
  while (encoder.next_scanline < encoder.image_height) {
    JSAMPROW row = const_cast<uint8_t*>(image.data) + encoder.next_scanline * image.stride_bytes;
    jpeg_write_scanlines(&encoder, &row, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  return true;
}

}  // namespace

std::vector<uint8_t> encode_jpeg(ImageView image, int quality) {
  ErrorTrap trap;
  unsigned char* data = nullptr;
  unsigned long bytes = 0;
  const bool done = compress(image, quality, trap, &data, &bytes);
  std::vector<uint8_t> file;
  if (done) file.assign(data, data + bytes);
  std::free(data);
  if (!done) throw std::runtime_error(std::string("cannot encode a JPEG: ") + trap.message);
  return file;
}

}  // namespace stoker
