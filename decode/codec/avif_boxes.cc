#include "decode/codec/avif_boxes.h"

#include <string>

namespace stoker {
namespace {

DecodeStatus bad_avif_box(const char* box) {
  return {DecodeCode::corrupt, -1, std::string("a bad or repeated box in an AVIF: ") + box};
}

// How an item's place is written: sizes of numbers, and how many items there are.
struct PlaceLayout {
  uint8_t version = 0;
  size_t offset_bytes = 0, length_bytes = 0, base_bytes = 0;
  uint32_t count = 0;
  size_t items_at = 0;
};

bool is_number(size_t bytes) { return bytes == 0 || bytes == 4 || bytes == 8; }

bool read_layout(std::span<const uint8_t> box, PlaceLayout& layout) {
  ByteReader reader(box, true);
  layout.version = reader.u8(0);
  const uint16_t sizes = reader.u16(kVersionAndFlags);
  layout.offset_bytes = sizes >> 12;
  layout.length_bytes = sizes >> 8 & 15;
  layout.base_bytes = sizes >> 4 & 15;
  const bool has_indexes = layout.version > 0 && (sizes & 15) != 0;  // libavif takes none
  const size_t count_bytes = layout.version < 2 ? 2 : 4;
  layout.count = count_bytes == 2 ? reader.u16(6) : reader.u32(6);
  layout.items_at = 6 + count_bytes;
  // Lengths of no bytes would let a file list extents without end.
  return !reader.went_outside() && layout.version <= 2 && !has_indexes &&
         layout.length_bytes != 0 && is_number(layout.offset_bytes) &&
         is_number(layout.length_bytes) && is_number(layout.base_bytes);
}

uint64_t number(ByteReader& reader, size_t& at, size_t bytes) {
  const uint64_t value = bytes == 0 ? 0 : bytes == 4 ? reader.u32(at) : reader.u64(at);
  at += bytes;
  return value;
}

// Counts boxes, up to one more than are allowed. Returns false if one is bad.
bool count_boxes(std::span<const uint8_t> bytes, size_t at, uint32_t& boxes) {
  AvifBox box;
  while (boxes <= AvifItems::kMax && next_box(bytes, at, box)) {
    if (box.is_cut) return false;
    ++boxes;
  }
  return boxes > AvifItems::kMax || at == bytes.size();
}

struct Place {
  uint32_t item = 0;
  uint32_t method = 0;  // 0: in the file, 1: in the box `idat`
  uint32_t source = 0;  // 0: this file
  uint32_t extents = 0;
  uint64_t offset = 0, length = 0;  // of the first extent
  bool is_bad = false;              // the offset is too large for a number
};

}  // namespace

bool next_box(std::span<const uint8_t> bytes, size_t& at, AvifBox& box) {
  constexpr uint32_t kToTheEnd = 0, kLong = 1;
  if (at >= bytes.size()) return false;
  ByteReader reader(bytes, true);
  uint64_t size = reader.u32(at);
  const uint64_t left = bytes.size() - at;
  const size_t head = size == kLong ? 16 : 8;
  box.type = reader.u32(at + 4);
  if (size == kLong) size = reader.u64(at + 8);
  if (size == kToTheEnd) size = left;
  box.is_cut = reader.went_outside() || size > left;
  if (reader.went_outside() || size < head) return false;
  box.content = bytes.subspan(at + head, static_cast<size_t>(size < left ? size : left) - head);
  at += static_cast<size_t>(size < left ? size : left);
  return true;
}

template <class Take>
bool AvifItems::each_place(const Take& take) const {
  PlaceLayout layout;
  if (!read_layout(places_, layout)) return false;
  ByteReader reader(places_, true);
  size_t at = layout.items_at;
  for (uint32_t i = 0; i < layout.count; ++i) {
    Place place;
    place.item = layout.version < 2 ? reader.u16(at) : reader.u32(at);
    at += layout.version < 2 ? 2 : 4;
    if (layout.version > 0) place.method = reader.u16(at) & 15;
    at += layout.version > 0 ? 2 : 0;
    place.source = reader.u16(at);
    at += 2;
    const uint64_t base = number(reader, at, layout.base_bytes);
    place.extents = reader.u16(at);
    at += 2;
    for (uint32_t extent = 0; extent < place.extents && !reader.went_outside(); ++extent) {
      const uint64_t offset = number(reader, at, layout.offset_bytes);
      const uint64_t length = number(reader, at, layout.length_bytes);
      if (extent > 0) continue;
      place.offset = base + offset;
      place.is_bad = place.offset < base;
      place.length = length;
    }
    if (reader.went_outside()) return false;
    if (!take(place)) return true;
  }
  return true;
}

DecodeStatus AvifItems::open(std::span<const uint8_t> file, std::span<const uint8_t> meta) {
  file_ = file;
  if (meta.size() < kVersionAndFlags || meta[0] != 0) return bad_avif_box("meta");
  Bytes main, handler;
  struct Known {
    uint32_t type;
    Bytes* content;
  };
  const auto find = [](Bytes bytes, size_t at, std::initializer_list<Known> known) {
    AvifBox box;
    while (next_box(bytes, at, box)) {
      if (box.is_cut) return false;
      for (const Known& one : known) {
        if (one.type != box.type) continue;
        if (!one.content->empty()) return false;  // libavif refuses a second one, too
        *one.content = box.content;
      }
    }
    return at == bytes.size();
  };
  Bytes shared, properties;
  if (!find(meta, kVersionAndFlags,
            {{box_type("hdlr"), &handler},
             {box_type("pitm"), &main},
             {box_type("iinf"), &names_},
             {box_type("iloc"), &places_},
             {box_type("iref"), &references_},
             {box_type("iprp"), &shared},
             {box_type("idat"), &data_}})) {
    return bad_avif_box("meta");
  }
  if (!find(shared, 0, {{box_type("ipco"), &properties}, {box_type("ipma"), &uses_}})) {
    return bad_avif_box("iprp");
  }
  if (!read_properties(properties)) return bad_avif_box("ipco");
  ByteReader reader(main, true);
  primary_ = reader.u8(0) == 0 ? reader.u16(kVersionAndFlags) : reader.u32(kVersionAndFlags);
  if (reader.went_outside()) return bad_avif_box("pitm");
  ByteReader kind(handler, true);
  if (kind.u32(8) != box_type("pict")) return bad_avif_box("hdlr");
  return check_counts();
}

// Takes one property more than are allowed, at most. Returns false if one is bad.
bool AvifItems::read_properties(Bytes box) {
  AvifBox property;
  size_t at = 0;
  while (properties_.size() <= kMax && next_box(box, at, property)) {
    if (property.is_cut) return false;
    properties_.push_back(property);
  }
  return properties_.size() > kMax || at == box.size();
}

// libavif keeps something for each of these, so they are counted before it sees the file.
DecodeStatus AvifItems::check_counts() const {
  const auto too_many = [](const char* what) {
    return DecodeStatus{DecodeCode::unsupported, -1,
                        "an AVIF with more than " + std::to_string(kMax) + " " + std::string(what)};
  };
  uint32_t items = 0, references = 0;
  if (names_.empty() || !count_boxes(names_, names_at(), items)) return bad_avif_box("iinf");
  if (!references_.empty() && !count_boxes(references_, kVersionAndFlags, references)) {
    return bad_avif_box("iref");
  }
  if (items > kMax) return too_many("items");
  if (properties_.size() > kMax) return too_many("properties");
  if (references > kMax) return too_many("boxes of references");
  ByteReader uses(uses_, true);
  if (uses.u32(kVersionAndFlags) > kMax) return too_many("items with properties");
  uint32_t used = 0, extents = 0, targets = 0, places = 0;
  if (!each_use([&](uint32_t, uint32_t, bool) { ++used; })) return bad_avif_box("ipma");
  if (used > kMaxUses) return too_many("items with 8 properties each");
  if (!each_place([&](const Place& place) {
        extents += place.extents;
        return ++places <= kMax && extents <= kMax;
      })) {
    return bad_avif_box("iloc");
  }
  if (places > kMax || extents > kMax) return too_many("places of items");
  each_reference([&](uint32_t, uint32_t, uint32_t) { ++targets; });
  if (targets > kMax) return too_many("references");
  return {};
}

// The first name of an item lies behind the number of items.
size_t AvifItems::names_at() const { return kVersionAndFlags + (names_[0] > 0 ? 4 : 2); }

template <class Take>
void AvifItems::each_name(const Take& take) const {
  AvifBox box;
  for (size_t at = names_at(); next_box(names_, at, box);) {
    ByteReader reader(box.content, true);
    const uint8_t version = reader.u8(0);
    if (box.type != box_type("infe") || version < 2 || version > 3) continue;
    const size_t id_bytes = version == 2 ? 2 : 4;
    const uint32_t id = version == 2 ? reader.u16(kVersionAndFlags) : reader.u32(kVersionAndFlags);
    constexpr size_t kProtection = 2;
    if (!take(id, reader.u32(kVersionAndFlags + id_bytes + kProtection))) return;
  }
}

uint32_t AvifItems::type(uint32_t item) const {
  uint32_t found = 0;
  each_name([&](uint32_t id, uint32_t type) {
    if (id == item) found = type;
    return id != item;
  });
  return found;
}

bool AvifItems::are_listed_in_order(uint32_t first, uint32_t second) const {
  bool is_in_order = true, has_second = false;
  const auto see = [&](uint32_t item) {
    is_in_order &= item != first || !has_second;
    has_second |= item == second;
    return true;
  };
  each_name([&](uint32_t item, uint32_t) { return see(item); });
  has_second = false;
  each_place([&](const Place& place) { return see(place.item); });
  has_second = false;
  each_use([&](uint32_t item, uint32_t, bool) { see(item); });
  return is_in_order;
}

DecodeStatus AvifItems::data(uint32_t item, std::span<const uint8_t>& found) const {
  Place place;
  bool has_place = false;
  each_place([&](const Place& one) {
    has_place = one.item == item;
    if (has_place) place = one;
    return !has_place;
  });
  if (!has_place || place.is_bad || place.length == 0) return bad_avif_box("iloc");
  if (place.source != 0 || place.method > 1 || place.extents != 1) {
    return {DecodeCode::unsupported, -1, "an AVIF whose pictures do not lie in one piece each"};
  }
  const Bytes bytes = place.method == 0 ? file_ : data_;
  if (place.offset > bytes.size() || place.length > bytes.size() - place.offset) {
    return cut_short(file_.size());
  }
  found = bytes.subspan(static_cast<size_t>(place.offset), static_cast<size_t>(place.length));
  return {};
}

}  // namespace stoker
