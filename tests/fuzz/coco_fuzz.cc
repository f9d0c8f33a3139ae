// COCO's JSON: an error, or a set that is safe to use. A text that is read in small pieces is read
// the same.
#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "pipeline/source/annotated/coco.h"
#include "tests/fuzz/check_fuzz_set.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  SharedAnnotations set;
  try {
    set = read_coco(supply_of(text)).finish();
  } catch (const std::runtime_error&) {
    return 0;
  }
  check_fuzz_set(*set);
  ByteSupply whole = supply_of(text);
  const auto in_pieces = [&](std::span<char> out) {
    return whole(out.first(std::min<size_t>(out.size(), 5)));
  };
  if (read_coco(in_pieces).finish()->info() != set->info()) std::abort();
  return 0;
}
