// VOC's XML: a picture with objects, or with a problem.
#include <stdexcept>
#include <string_view>

#include "pipeline/source/annotated/voc.h"
#include "tests/fuzz/check_fuzz_set.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  VocReader reader;
  reader.add("picture", text);
  try {
    check_fuzz_set(*reader.finish().finish());
  } catch (const std::runtime_error&) {
    // The name of a class has a NUL.
  }
  return 0;
}
