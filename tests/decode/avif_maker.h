// AVIF files put together box by box, which tests change one by one. It shares no code with what
// reads them. The coded picture comes from a golden file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decode/image.h"

namespace stoker {

using AvifBytes = std::vector<uint8_t>;

AvifBytes operator+(AvifBytes left, const AvifBytes& right);
AvifBytes be16(uint32_t value);
AvifBytes be32(uint32_t value);
AvifBytes be64(uint64_t value);
AvifBytes avif_text(const std::string& text);
AvifBytes avif_box(const std::string& type, const AvifBytes& content);
// A box whose content begins with a version and flags.
AvifBytes avif_full_box(const std::string& type, int version, const AvifBytes& content);

// The content of the first box of a type, wherever it lies.
AvifBytes content_of(const AvifBytes& file, const std::string& type);

// The boxes of a file with one coded picture, item 1, whose data lie in front of `meta`.
struct AvifParts {
  explicit AvifParts(const AvifBytes& coded, Size size, const AvifBytes& coding);

  AvifBytes file() const;
  static constexpr uint32_t kCodedAt = 40;  // in the file

  AvifBytes brands = avif_text("avif") + be32(0) + avif_text("avif") + avif_text("mif1");
  AvifBytes coded;        // content of `mdat`
  AvifBytes before_meta;  // more boxes
  AvifBytes handler = avif_full_box("hdlr", 0, be32(0) + avif_text("pict") + AvifBytes(13, 0));
  AvifBytes primary = avif_full_box("pitm", 0, be16(1));
  AvifBytes names;  // of items, each a box
  uint32_t name_count = 1;
  AvifBytes places;      // the box
  AvifBytes references;  // boxes
  AvifBytes properties;  // boxes
  AvifBytes uses;        // entries of `ipma`
  uint32_t use_count = 1;
  AvifBytes more_meta;  // more boxes
};

AvifBytes avif_name(uint32_t item, const std::string& type);
AvifBytes avif_size(Size size);

}  // namespace stoker
