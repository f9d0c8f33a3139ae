// The entropy decoder against jpeg_read_coefficients: every file that both decode without an error
// must give the same coefficients. And a long skip leads to the same place as one of MCU by MCU.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "decode/aligned_buffer.h"
#include "decode/jpeg/scan_reader.h"
#include "tests/fuzz/libjpeg_coefficients.h"

namespace stoker {
namespace {

// Reads all blocks of component 0, in rows.
bool read_with_ours(std::span<const uint8_t> file, const BaselineJpeg& jpeg,
                    std::vector<int16_t>& blocks) {
  static HuffmanCache tables;
  static ScanReader reader;
  if (!reader.open(file, jpeg, tables) || !reader.begin()) return false;
  const auto in_blocks = [](int samples) { return (samples + 7) / 8; };
  const JpegComponent& first = jpeg.components[0];
  for (int row = 0; row < jpeg.mcus_down; ++row) {
    std::vector<AlignedBuffer<int16_t>> lines(12);
    for (int c = 0; c < jpeg.component_count; ++c) {
      for (int r = 0; r < jpeg.components[c].down; ++r) {
        const size_t count = static_cast<size_t>(jpeg.mcus_across * jpeg.components[c].across + 4);
        reader.set_coefficients(c, r, lines[static_cast<size_t>(4 * c + r)].grow(count * 64));
      }
    }
    if (!reader.store(0, jpeg.mcus_across)) return false;
    for (int r = 0; r < first.down && row * first.down + r < in_blocks(first.size.height); ++r) {
      for (int b = 0; b < in_blocks(first.size.width); ++b) {
        const int16_t* block =
            lines[static_cast<size_t>(r)].data() + coefficient_offset(static_cast<size_t>(b));
        for (int i = 0; i < kBlockSize; ++i) blocks.push_back(block[i / 8 * 32 + i % 8]);
      }
    }
  }
  return true;
}

bool is_skipped_as_mcu_by_mcu(std::span<const uint8_t> file, const BaselineJpeg& jpeg) {
  static HuffmanCache tables;
  static ScanReader reader, twin;
  const int all = jpeg.mcus_across * jpeg.mcus_down, count = all - all / 8 - 1;
  if (!twin.open(file, jpeg, tables) || !twin.begin()) return true;
  for (int i = 0; i < count; ++i) {
    if (!twin.skip(1)) return true;
  }
  ScanPoint expected, place;
  if (!twin.here(expected)) return true;
  return reader.open(file, jpeg, tables) && reader.begin() && reader.skip(count) &&
         reader.here(place) && place.byte == expected.byte && place.bit == expected.bit &&
         std::equal(place.dc, place.dc + 3, expected.dc);
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  const std::span<const uint8_t> file(data, size);
  BaselineJpeg jpeg;
  if (!parse_baseline(file, jpeg) || int64_t{jpeg.size.width} * jpeg.size.height > 1 << 18)
    return 0;
  if (!is_skipped_as_mcu_by_mcu(file, jpeg)) std::abort();
  std::vector<int16_t> ours;
  std::vector<std::vector<int16_t>> theirs;
  if (!read_with_ours(file, jpeg, ours)) return 0;
  if (read_with_libjpeg(file, theirs) && ours != theirs[0]) std::abort();
  return 0;
}
