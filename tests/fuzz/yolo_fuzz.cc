// YOLO's rows and its names of classes. Input: nothing, a data.yaml, rows.
#include <cstdlib>

#include "pipeline/source/annotated/yolo.h"
#include "tests/fuzz/check_fuzz_set.h"
#include "tests/fuzz/fuzz_parts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  const auto parts = split_fuzz_parts(data, size);
  if (read_yolo_classes(parts[1]).size() > 100'000) std::abort();
  Annotations found;
  found.size = {640, 480};
  if (!read_yolo_rows(parts[2], found).empty()) return 0;
  AnnotationSetBuilder builder({.objects = true, .masks = true});
  builder.add("picture", found);
  check_fuzz_set(*builder.finish());
  return 0;
}
