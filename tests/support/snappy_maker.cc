#include "tests/support/snappy_maker.h"

#include <map>

namespace stoker {

void SnappyMaker::literal(std::string_view text) {
  const size_t last = text.size() - 1;
  size_t bytes = 0;
  while (last >> (8 * bytes) != 0) ++bytes;
  if (last < 60) bytes = 0;
  elements_ += static_cast<char>((bytes == 0 ? last : 59 + bytes) << 2);
  for (size_t i = 0; i < bytes; ++i) elements_ += static_cast<char>(last >> (8 * i));
  elements_ += text;
  text_ += text;
}

void SnappyMaker::copy(size_t back, size_t length) {
  if (back < 2048 && length >= 4 && length <= 11) {
    elements_ += static_cast<char>(1 | (length - 4) << 2 | back >> 8 << 5);
    elements_ += static_cast<char>(back);
  } else {
    const size_t bytes = back < 65536 ? 2 : 4;
    elements_ += static_cast<char>((bytes == 2 ? 2 : 3) | (length - 1) << 2);
    for (size_t i = 0; i < bytes; ++i) elements_ += static_cast<char>(back >> (8 * i));
  }
  for (size_t i = 0; i < length; ++i) text_ += text_[text_.size() - back];
}

void SnappyMaker::pack(std::string_view text, size_t piece) {
  for (size_t at = 0; at < text.size(); at += piece) pack_piece(text.substr(at, piece));
}

void SnappyMaker::pack_piece(std::string_view piece) {
  std::map<std::string_view, size_t> seen;
  size_t literal_at = 0, at = 0;
  const auto end_literal = [&] {
    if (at > literal_at) literal(piece.substr(literal_at, at - literal_at));
  };
  while (at + 4 <= piece.size()) {
    const auto [found, is_new] = seen.try_emplace(piece.substr(at, 4), at);
    if (is_new) {
      ++at;
      continue;
    }
    size_t length = 4;
    while (length < 64 && at + length < piece.size() &&
           piece[found->second + length] == piece[at + length]) {
      ++length;
    }
    end_literal();
    copy(at - found->second, length);
    found->second = at;
    at += length;
    literal_at = at;
  }
  at = piece.size();
  end_literal();
}

std::string SnappyMaker::stream() const {
  std::string stream;
  size_t length = text_.size();
  for (; length >= 0x80; length >>= 7) stream += static_cast<char>(length | 0x80);
  stream += static_cast<char>(length);
  return stream + elements_;
}

}  // namespace stoker
