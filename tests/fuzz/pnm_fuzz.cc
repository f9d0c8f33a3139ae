// Netpbm files: see parts_of_picture.h.
#include "tests/fuzz/parts_of_picture.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stoker::check_parts_of_picture(stoker::ImageFormat::pnm, data, size);
  return 0;
}
