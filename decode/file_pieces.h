// Those bytes of an encoded file that are in memory: all of them, or only what a crop needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker {

// Two runs of bytes, which may overlap. A view: whoever makes it keeps the bytes.
struct FilePieces {
  size_t file_bytes = 0;          // of the whole file
  std::span<const uint8_t> head;  // from the file's first byte on
  std::span<const uint8_t> body;  // from `body_at` on
  size_t body_at = 0;

  FilePieces() = default;
  // A file that is in memory as a whole.
  explicit FilePieces(std::span<const uint8_t> whole)
      : file_bytes(whole.size()), head(whole), body(whole) {}

  bool is_whole() const { return head.size() == file_bytes; }
  size_t read_bytes() const {  // if the runs do not overlap, or are one
    return head.size() + (body.data() == head.data() ? 0 : body.size());
  }
};

}  // namespace stoker
