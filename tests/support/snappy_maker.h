// Makes streams of Snappy for tests, element by element, and with what comes out of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stoker {

class SnappyMaker {
 public:
  // At most 2^32 bytes.
  void literal(std::string_view text);
  // `length`: 1 to 64; `back`: up to what there is.
  void copy(size_t back, size_t length);
  // Packs `text` as the usual encoders do: each piece of `piece` bytes by itself, with copies of
  // what has been seen in the piece.
  void pack(std::string_view text, size_t piece);

  const std::string& elements() const { return elements_; }
  const std::string& text() const { return text_; }
  // The elements behind the length of the text.
  std::string stream() const;

 private:
  void pack_piece(std::string_view piece);

  std::string elements_, text_;
};

}  // namespace stoker
