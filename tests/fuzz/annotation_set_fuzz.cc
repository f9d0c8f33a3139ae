// The bytes of a set of annotations, without their seals (they guard against accidents, not against
// forgery): what the set accepts must be safe to use. Input: nothing, the table, the rest.
#include "pipeline/source/annotated/annotation_table.h"
#include "tests/fuzz/check_fuzz_set.h"
#include "tests/fuzz/fuzz_parts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  const auto parts = split_fuzz_parts(data, size);
  AnnotationTable table;
  if (!read_table(parts[1], table) || !table.fits(parts[2].size())) return 0;
  check_fuzz_set(*make_annotation_set(table, parts[2], nullptr));
  return 0;
}
