#include "decode/codec/tiff_lines.h"

#include <algorithm>
#include <cstring>

namespace stoker {
namespace {

constexpr uint32_t kNoPredictor = 1, kDifferences = 2;
constexpr int64_t kPiece = 8192;  // bytes that are inflated at once

// Adds to each sample the one of the pixel at its left.
template <class Sample>
void sum_up(uint8_t* line, int64_t samples, int64_t per_pixel) {
  for (int64_t i = per_pixel; i < samples; ++i) {
    Sample left, here;
    std::memcpy(&left, line + (i - per_pixel) * static_cast<int64_t>(sizeof left), sizeof left);
    std::memcpy(&here, line + i * static_cast<int64_t>(sizeof here), sizeof here);
    here = static_cast<Sample>(here + left);
    std::memcpy(line + i * static_cast<int64_t>(sizeof here), &here, sizeof here);
  }
}

}  // namespace

bool StoredTiffLines::has(const TiffLayout& layout) {
  if (layout.compression == kTiffUncompressed || layout.has_packed_bits()) return true;
  const bool is_undone =
      layout.predictor == kNoPredictor || (layout.predictor == kDifferences && layout.bits >= 8);
  return is_undone && (layout.compression == kTiffDeflate || layout.compression == kTiffOldDeflate);
}

bool StoredTiffLines::Input::next(std::span<const uint8_t>& piece) {
  if (is_given_) return false;
  is_given_ = true;
  piece = bytes_;
  return true;
}

bool StoredTiffLines::begin(const TiffPart& part) {
  part_ = part;
  read_ = 0;
  stored_ = tiff_part(bytes_, layout_, part.number);
  if (layout_.compression == kTiffUncompressed) return true;
  if (layout_.has_packed_bits()) {
    packed_.begin(stored_, layout_.is_bit_reversed);
    return true;
  }
  input_.emplace(stored_);
  const auto total = static_cast<uint64_t>(layout_.line_bytes() * part.needed);
  inflater_.begin(*input_, {kPiece, total, part.needed == part.lines});
  return true;
}

bool StoredTiffLines::next(uint8_t* line) {
  const int64_t size = layout_.line_bytes();
  if (layout_.compression == kTiffUncompressed) {
    std::memcpy(line, stored_.data() + read_ * size, static_cast<size_t>(size));
    if (layout_.is_bit_reversed) std::transform(line, line + size, line, reversed_bits);
  } else if (!(layout_.has_packed_bits() ? unpack(line) : inflate(line))) {
    return false;
  }
  ++read_;
  constexpr uint16_t kOne = 1;
  const bool is_machine_big = *reinterpret_cast<const uint8_t*>(&kOne) == 0;
  if (layout_.bits == 16 && layout_.is_big_endian != is_machine_big) {
    for (int64_t i = 0; i + 1 < size; i += 2) std::swap(line[i], line[i + 1]);
  }
  undo_predictor(line);
  return true;
}

// A last run that goes on behind the part is damage, as libtiff warns of it.
bool StoredTiffLines::unpack(uint8_t* line) {
  if (!packed_.read(line, layout_.line_bytes())) return false;
  return read_ + 1 < part_.lines || !packed_.had_more();
}

// A stream must be whole, have the right checksum, and have no more bytes than the part, as far as
// it is read.
bool StoredTiffLines::inflate(uint8_t* line) {
  const int64_t size = layout_.line_bytes();
  for (int64_t at = 0; at < size; at += kPiece) {
    const auto count = static_cast<size_t>(std::min(kPiece, size - at));
    const uint8_t* piece = inflater_.read(count);
    if (piece == nullptr) return false;
    std::memcpy(line + at, piece, count);
  }
  const bool is_last = read_ + 1 == part_.lines;
  return !is_last || (inflater_.ends_well() && !inflater_.had_more());
}

// Only deflated lines have one.
void StoredTiffLines::undo_predictor(uint8_t* line) const {
  if (layout_.predictor != kDifferences || !input_) return;
  const int64_t per_pixel = layout_.is_separate ? 1 : layout_.samples;
  const int64_t samples = layout_.part.width * per_pixel;
  if (layout_.bits == 8) sum_up<uint8_t>(line, samples, per_pixel);
  if (layout_.bits == 16) sum_up<uint16_t>(line, samples, per_pixel);
}

std::string StoredTiffLines::problem() const {
  return std::string("a strip or tile is no whole ") +
         (layout_.has_packed_bits() ? "run of PackBits" : "zlib stream") + " of its size";
}

}  // namespace stoker
