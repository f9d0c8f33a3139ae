// Files of the format that the target is named after, as STOKER_FUZZED_FORMAT says: see
// parts_of_picture.h.
#include "tests/fuzz/parts_of_picture.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stoker::check_parts_of_picture(stoker::ImageFormat::STOKER_FUZZED_FORMAT, data, size);
  return 0;
}
