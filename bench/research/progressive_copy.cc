#include "bench/research/progressive_copy.h"

#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "decode/jpeg/libjpeg_session.h"

namespace stoker {

std::vector<uint8_t> progressive_copy(std::span<const uint8_t> jpeg) {
  JpegSession session(jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  const bool is_read = session.read_header() && session.guarded([&](jpeg_decompress_struct& in) {
    jvirt_barray_ptr* coefficients = jpeg_read_coefficients(&in);
    jpeg_compress_struct out;
    jpeg_error_mgr errors;  // libjpeg ends the program if it cannot write
    out.err = jpeg_std_error(&errors);
    jpeg_create_compress(&out);
    jpeg_mem_dest(&out, &memory, &size);
    jpeg_copy_critical_parameters(&in, &out);
    jpeg_simple_progression(&out);
    jpeg_write_coefficients(&out, coefficients);
    jpeg_finish_compress(&out);
    jpeg_destroy_compress(&out);
  });
  const std::unique_ptr<unsigned char, decltype(&std::free)> owner(memory, &std::free);
  if (!is_read) throw std::runtime_error("a progressive copy: " + session.failure().message);
  return {memory, memory + size};
}

}  // namespace stoker
