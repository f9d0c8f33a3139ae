#include "decode/jpeg/crop_bytes.h"

#include <algorithm>

namespace stoker {
namespace {

size_t to_whole_blocks(size_t value) { return (value + kSeekBlock - 1) / kSeekBlock * kSeekBlock; }

}  // namespace

bool find_crop_bytes(const SeekIndex& index, Box shown, CropBytes& bytes) {
  const IndexedFile& file = index.file();
  // Colours are made from up to two more of their samples at each side.
  const int margin = file.mcu.height / 4;
  const int first = std::max(shown.y - margin, 0) / file.mcu.height;
  const int behind =
      std::min((shown.y + shown.height + margin) / file.mcu.height + 1, file.mcus_down());
  ScanPoint from, to;
  if (behind > index.rows() || !index.find(first, 0, from)) return false;
  size_t end = file.bytes;
  if (behind < file.mcus_down()) {
    if (!index.find(behind, 0, to)) return false;
    // The last row's bits may end in this byte, which may be followed by one of stuffing.
    end = std::min(file.bytes, to_whole_blocks(file.scan_begin + to.byte + 2));
  }
  bytes.head = {0, std::min(file.bytes, to_whole_blocks(file.scan_begin))};
  bytes.body = {(file.scan_begin + from.byte) / kSeekBlock * kSeekBlock, end};
  if (bytes.body.begin >= end) return false;  // a damaged index
  if (bytes.body.begin < bytes.head.end + kMinUnreadBytes) {
    bytes.head = bytes.body = {0, std::max(bytes.head.end, end)};
  }
  return bytes.size() + kMinUnreadBytes <= file.bytes;
}

}  // namespace stoker
