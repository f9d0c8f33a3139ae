// The bytes that an index keeps of a sample's objects: a problem, or objects that are safe to use.
// Input: (a byte: keypoints, names of classes with a space behind each, piece).
#include <cstdlib>
#include <utility>

#include "pipeline/source/annotated/record_code.h"
#include "tests/fuzz/check_fuzz_set.h"
#include "tests/fuzz/fuzz_parts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  const FuzzParts parts = split_fuzz_parts(data, size);
  AnnotationInfo info{.objects = true, .masks = true};
  info.keypoints = parts[0].empty() ? 0 : static_cast<uint8_t>(parts[0][0]);
  std::string name;
  for (const char c : parts[1]) {
    if (c == ' ') info.class_names.push_back(std::exchange(name, ""));
    if (c != ' ') name += c;
  }
  Annotations found;
  if (!read_record(info, parts[2], found).empty()) return 0;
  const size_t objects = found.objects.size();
  if (found.keypoints.size() != objects * static_cast<size_t>(info.keypoints)) std::abort();
  for (size_t k = 0; k < objects; ++k) check_fuzz_object(info, found, k);
  return 0;
}
