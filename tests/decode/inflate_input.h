// A zlib stream in pieces, and what zlib and we make of it: for the tests and the fuzz target.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "decode/codec/inflate.h"

namespace stoker {

// Gives a stream in pieces of `piece` bytes, each in memory of its own, so that the sanitizers see
// what is read behind one.
class InflatePieces final : public InflateInput {
 public:
  InflatePieces(std::span<const uint8_t> stream, size_t piece) {
    for (size_t at = 0; at < stream.size(); at += piece) {
      const std::span<const uint8_t> part = stream.subspan(at, std::min(piece, stream.size() - at));
      pieces_.emplace_back(part.begin(), part.end());
    }
  }
  bool next(std::span<const uint8_t>& piece) override {
    if (given_ == pieces_.size()) return false;
    piece = pieces_[given_++];
    return true;
  }
  size_t given() const { return given_; }

 private:
  std::vector<std::vector<uint8_t>> pieces_;
  size_t given_ = 0;
};

struct InflateResult {
  std::vector<uint8_t> bytes;  // up to the fault, or the most that was asked for
  bool is_complete = false;    // ends with the right checksum
};

inline InflateResult inflate_by_zlib(std::span<const uint8_t> stream, size_t most) {
  z_stream zlib{};
  if (inflateInit(&zlib) != Z_OK) std::abort();
  InflateResult result;
  result.bytes.resize(most);
  zlib.next_in = const_cast<Bytef*>(stream.data());  // zlib does not write there
  zlib.avail_in = static_cast<uInt>(stream.size());
  zlib.next_out = result.bytes.data();
  zlib.avail_out = static_cast<uInt>(most);
  result.is_complete = inflate(&zlib, Z_FINISH) == Z_STREAM_END;
  result.bytes.resize(zlib.total_out);
  inflateEnd(&zlib);
  return result;
}

inline InflateResult inflate_by_us(std::span<const uint8_t> stream, size_t most, size_t piece) {
  InflatePieces pieces(stream, piece);
  Inflater inflater;
  inflater.begin(pieces, {1, most, true});
  InflateResult result;
  while (result.bytes.size() < most) {
    const uint8_t* byte = inflater.read(1);
    if (byte == nullptr) break;
    result.bytes.push_back(*byte);
  }
  result.is_complete = inflater.ends_well() && inflater.is_at_end();
  return result;
}

}  // namespace stoker
