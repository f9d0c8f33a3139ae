// The boxes of an AVIF file as far as a still picture needs them (ISO/IEC 14496-12, the base of the
// format, and 23008-12, HEIF): a file has items (coded pictures, grids of them, alpha), each with
// properties, references to others and a place in the file. Internal to the codecs.
//
// AvifItems borrows the bytes and keeps no copy: it walks through the boxes for each question,
// whose number open() limits. So the time that a file takes does not grow with what it claims.
//
// Threads: any. Errors: a status. Memory: a table of the properties.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/byte_reader.h"
#include "decode/decode_status.h"
#include "decode/image.h"

namespace stoker {

inline constexpr size_t kVersionAndFlags = 4;  // bytes in front of the content of most boxes

constexpr uint32_t box_type(const char (&name)[5]) {
  uint32_t type = 0;
  for (int i = 0; i < 4; ++i) type = type << 8 | static_cast<uint8_t>(name[i]);
  return type;
}

struct AvifBox {
  uint32_t type = 0;
  std::span<const uint8_t> content;
  bool is_cut = false;  // its end lies behind the bytes
};

// Reads the box at `at`, and moves `at` behind it. Returns false at the end of the bytes, and for
// what is no box; then `at` is not the end.
bool next_box(std::span<const uint8_t> bytes, size_t& at, AvifBox& box);

class AvifItems {
 public:
  // At most as many of each: items, properties, boxes of references, extents. Phones make grids of
  // some hundred items.
  static constexpr uint32_t kMax = 1024;
  static constexpr uint32_t kMaxUses = 8 * kMax;  // of properties, by all items

  // Finds the boxes inside the content of a `meta` box, and counts what they have.
  DecodeStatus open(std::span<const uint8_t> file, std::span<const uint8_t> meta);

  uint32_t primary() const { return primary_; }
  // Returns the type of an item, such as `av01`; 0 if there is no such item.
  uint32_t type(uint32_t item) const;
  // Returns true if every list of items (`iloc`, `iinf`, `ipma`) has `first` before `second`.
  bool are_listed_in_order(uint32_t first, uint32_t second) const;
  // Finds the bytes of an item. It must lie in one piece.
  DecodeStatus data(uint32_t item, std::span<const uint8_t>& found) const;

  // Calls take(type, content, is_essential) for each property of an item. Returns false if one of
  // them does not exist.
  template <class Take>
  bool each_property(uint32_t item, const Take& take) const;

  // Calls take(type, from, to) for each reference from one item to another.
  template <class Take>
  void each_reference(const Take& take) const;

 private:
  using Bytes = std::span<const uint8_t>;

  bool read_properties(Bytes box);
  DecodeStatus check_counts() const;
  size_t names_at() const;
  // Calls take(item, type) for each item that has a name, until it returns false.
  template <class Take>
  void each_name(const Take& take) const;
  // Calls take(item, index, is_essential) for each use of a property by an item; the first property
  // has index 1.
  template <class Take>
  bool each_use(const Take& take) const;
  // Calls take(place) for each item that has one, until it returns false. Returns false for a bad
  // box.
  template <class Take>
  bool each_place(const Take& take) const;

  Bytes file_;
  Bytes names_, places_, references_, uses_, data_;  // iinf, iloc, iref, ipma, idat
  std::vector<AvifBox> properties_;                  // of ipco
  uint32_t primary_ = 0;
};

template <class Take>
bool AvifItems::each_use(const Take& take) const {
  ByteReader reader(uses_, true);
  const bool has_long_items = reader.u8(0) > 0, has_long_indexes = (reader.u8(3) & 1) != 0;
  const uint32_t essential = has_long_indexes ? 0x8000 : 0x80;
  const uint32_t count = reader.u32(4);
  size_t at = 8;
  for (uint32_t i = 0; i < count && !reader.went_outside(); ++i) {
    const uint32_t item = has_long_items ? reader.u32(at) : reader.u16(at);
    at += has_long_items ? 4 : 2;
    const uint32_t uses = reader.u8(at++);
    for (uint32_t use = 0; use < uses && !reader.went_outside(); ++use) {
      const uint32_t value = has_long_indexes ? reader.u16(at) : reader.u8(at);
      at += has_long_indexes ? 2 : 1;
      take(item, value & (essential - 1), (value & essential) != 0);
    }
  }
  return !reader.went_outside();
}

template <class Take>
bool AvifItems::each_property(uint32_t item, const Take& take) const {
  bool are_there = true;
  const bool is_good = each_use([&](uint32_t owner, uint32_t index, bool is_essential) {
    if (owner != item || index == 0) return;  // 0: no property
    are_there &= index <= properties_.size();
    if (!are_there) return;
    const AvifBox& box = properties_[index - 1];
    take(box.type, box.content, is_essential);
  });
  return is_good && are_there;
}

template <class Take>
void AvifItems::each_reference(const Take& take) const {
  if (references_.empty()) return;
  const size_t id_bytes = references_[0] > 0 ? 4 : 2;
  AvifBox box;
  for (size_t at = kVersionAndFlags; next_box(references_, at, box);) {
    ByteReader reader(box.content, true);
    const auto id = [&](size_t place) {
      return id_bytes == 4 ? reader.u32(place) : uint32_t{reader.u16(place)};
    };
    const uint32_t count = reader.u16(id_bytes);
    for (size_t i = 0; i < count; ++i) {
      const uint32_t to = id(id_bytes + 2 + i * id_bytes);
      if (reader.went_outside()) return;
      take(box.type, id(0), to);
    }
  }
}

// The headers of a coded AV1 picture ("AV1 Bitstream & Decoding Process Specification", sections
// 5.3 to 5.9): how large it is, and that it is one picture and nothing else. Byte offsets count
// from the first byte of `data`.
//
// A decoder keeps frames that are not shown for those after them, eight at a time, and a frame may
// have another size than its sequence. So few bytes could take much memory, or give pixels that
// have to be scaled. Accepted is what encoders make of a still picture: one sequence header, one
// key frame of that size, shown, without layers.
DecodeStatus read_av1_header(std::span<const uint8_t> data, Size& size);

}  // namespace stoker
