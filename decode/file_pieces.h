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
  bool is_one_run() const { return body.data() == head.data(); }
  // How many bytes there are. REQUIRES: one run, or two that do not overlap.
  size_t read_bytes() const { return head.size() + (is_one_run() ? 0 : body.size()); }
};

}  // namespace stoker
