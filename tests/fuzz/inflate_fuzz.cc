// Deflated data: the same bytes as zlib's up to the same fault, in pieces of any size.
//
// Input: a byte that says how large the pieces are, then the stream.
#include <cstdlib>

#include "tests/decode/inflate_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  if (size < 2) return 0;
  constexpr size_t kMax = 100'000;
  const std::span<const uint8_t> stream(data + 1, size - 1);
  const InflateResult theirs = inflate_by_zlib(stream, kMax);
  const InflateResult ours = inflate_by_us(stream, kMax, 1 + size_t{data[0]} * data[0]);
  if (ours.bytes != theirs.bytes || ours.is_complete != theirs.is_complete) std::abort();
  return 0;
}
