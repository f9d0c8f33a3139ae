// The seek index: a file's own index, of all its rows or of those that another crop passed, gives
// the same pixels as none; a changed index with a valid seal causes no read outside; bytes that are
// no index are refused.
//
// Input: eight bytes for the crop, one for the kind of index, sixteen for the changes to it, then
// the file.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "decode/crop_decoder.h"
#include "decode/jpeg/seek_index.h"
#include "tests/fuzz/fuzz_input.h"

namespace stoker {
namespace {

constexpr size_t kChangeBytes = 16;
constexpr size_t kSealBytes = 8;

void tamper(std::vector<uint8_t>& index, const uint8_t* changes) {
  const size_t sealed = index.size() - kSealBytes;
  for (size_t i = 0; i < kChangeBytes; i += 2) index[changes[i] % sealed] ^= changes[i + 1];
  const uint64_t seal = XXH3_64bits(index.data(), sealed);
  std::memcpy(index.data() + sealed, &seal, sizeof seal);
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  constexpr int64_t kMaxPixels = 1 << 20;
  constexpr size_t kHeader = kFuzzHeader + 1 + kChangeBytes;
  static CropDecoder fast(kMaxPixels, PixelPolicy::fast), exact(kMaxPixels, PixelPolicy::exact);
  static CropDecoder exact12(kMaxPixels, PixelPolicy::exact_pillow12);
  static SeekIndexBuilder builder;
  if (size < kHeader) return 0;
  const std::span<const uint8_t> file(data + kHeader, size - kHeader);
  BaselineJpeg jpeg;
  if (!parse_baseline(file, jpeg)) return 0;
  if (int64_t{jpeg.size.width} * jpeg.size.height > kMaxPixels) return 0;
  const CropSpec spec = read_fuzz_input(data, size, jpeg.size).spec;
  const Box& window = spec.window;
  CropDecoder* const decoders[] = {&fast, &exact, &exact12, &exact};
  CropDecoder& decoder = *decoders[data[kFuzzHeader] / 2 % 4];
  std::vector<uint8_t> plain(static_cast<size_t>(window.width) * window.height * 3);
  std::vector<uint8_t> indexed(plain.size());
  // A crop of the upper half leaves an index of its rows.
  static CropDecoder recording(kMaxPixels, PixelPolicy::exact);
  recording.record_places(0);
  CropSpec upper = spec;
  upper.crop = {0, 0, jpeg.size.width, (jpeg.size.height + 1) / 2};
  const auto decode = [&](std::vector<uint8_t>& to, std::span<const uint8_t> index) {
    return decoder.decode(file, spec, {to.data(), window.width, window.height, 3 * window.width},
                          index);
  };
  const bool is_good = decode(plain, {});
  if (decode(indexed, {data, kHeader}) != is_good) std::abort();
  std::vector<uint8_t> index;
  if (recording.decode(file, upper,
                       {indexed.data(), window.width, window.height, 3 * window.width})) {
    const std::span<const uint8_t> recorded = recording.recorded_index();
    index.assign(recorded.begin(), recorded.end());
    if (decode(indexed, index) != is_good || (is_good && indexed != plain)) std::abort();
    if (!index.empty()) tamper(index, data + kFuzzHeader + 1);
    if (is_good && !decode(indexed, index)) std::abort();
  }
  if (!builder.build(file, data[kFuzzHeader] % 2 == 0 ? SeekStep::row : SeekStep::eight, index)) {
    return 0;
  }
  // An index guarantees that the whole file is good, but the plan of a crop may be too large.
  if (decode(indexed, index) != is_good || (is_good && indexed != plain)) std::abort();
  // Some of its blocks give the same picture, or none.
  FilePieces pieces(file);
  const size_t blocks = (file.size() + kSeekBlock - 1) / kSeekBlock;
  pieces.head = file.first(std::min(file.size(), (1 + data[0] % blocks) * kSeekBlock));
  pieces.body_at = data[1] % blocks * kSeekBlock;
  pieces.body = file.subspan(pieces.body_at);
  pieces.body =
      pieces.body.first(std::min(pieces.body.size(), (1 + data[2] % blocks) * kSeekBlock));
  const bool is_of_pieces = decoder.decode_pieces(
      pieces, spec, {indexed.data(), window.width, window.height, 3 * window.width}, index);
  if (is_of_pieces && (!is_good || indexed != plain)) std::abort();
  tamper(index, data + kFuzzHeader + 1);
  // A forged index can choose coefficients; exact pixels refuse a file whose coefficients belong to
  // no picture. The fast policy has pixels of its own for the bilinear filter alone.
  const bool is_taken = decode(indexed, index);
  const bool is_fast = &decoder == &fast && spec.filter == Filter::bilinear;
  if (is_good ? !is_taken : is_taken && is_fast) std::abort();
  return 0;
}
