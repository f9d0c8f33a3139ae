// ProgressiveReader against jpeg_read_coefficients: libjpeg must read every file that ours reads
// without an error or a warning that counts, and give the same coefficients. The first four bytes
// select the MCUs that are kept.
#include <cstdlib>

#include "decode/jpeg/progressive_reader.h"
#include "tests/fuzz/libjpeg_coefficients.h"

namespace stoker {
namespace {

constexpr size_t kHeader = 4;
constexpr int64_t kMaxPixels = 1 << 18, kLimit = int64_t{16} << 20;

void require(bool holds) {
  if (!holds) std::abort();
}

Box box_of(const uint8_t* data, const JpegFrame& jpeg) {
  Box box;
  box.x = data[0] % jpeg.mcus_across;
  box.y = data[1] % jpeg.mcus_down;
  box.width = 1 + data[2] % (jpeg.mcus_across - box.x);
  box.height = 1 + data[3] % (jpeg.mcus_down - box.y);
  return box;
}

void require_same(CropCoefficients& ours, int c, const std::vector<int16_t>& theirs) {
  const Size blocks = ours.blocks(c);
  const Box& kept = ours.kept(c);
  require(theirs.size() == static_cast<size_t>(blocks.width) * blocks.height * kBlockSize);
  for (int y = 0; y < kept.height; ++y) {
    for (int x = 0; x < kept.width; ++x) {
      const int16_t* a = ours.row(c, y) + coefficient_offset(static_cast<size_t>(x));
      const int16_t* b =
          &theirs[(static_cast<size_t>(kept.y + y) * blocks.width + kept.x + x) * kBlockSize];
      for (int i = 0; i < kBlockSize; ++i) require(a[i / 8 * 8 * kBlockGroup + i % 8] == b[i]);
    }
  }
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  static ProgressiveReader reader;
  if (size < kHeader) return 0;
  const std::span<const uint8_t> file(data + kHeader, size - kHeader);
  if (!reader.open(file)) return 0;
  const JpegFrame& jpeg = reader.jpeg();
  if (int64_t{jpeg.size.width} * jpeg.size.height > kMaxPixels) return 0;
  if (!reader.read(box_of(data, jpeg), kLimit)) return 0;
  std::vector<std::vector<int16_t>> theirs;
  require(read_with_libjpeg(file, theirs));
  for (int c = 0; c < jpeg.component_count; ++c) {
    require_same(reader.coefficients(), c, theirs[static_cast<size_t>(c)]);
  }
  return 0;
}
