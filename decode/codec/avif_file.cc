#include "decode/codec/avif_file.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "decode/byte_reader.h"
#include "decode/codec/avif_boxes.h"

namespace stoker {
namespace {

constexpr uint32_t kCoded = box_type("av01"), kGrid = box_type("grid");
constexpr uint32_t kMaxAv1Side = 65536;  // of an AV1 picture

DecodeStatus unsupported_avif(const std::string& what) {
  return {DecodeCode::unsupported, -1, "an AVIF with " + what};
}
DecodeStatus bad_avif(const char* what) {
  return {DecodeCode::corrupt, -1, std::string("a bad AVIF: ") + what};
}

// ---- The brands: what readers of a file have to know; the first one is what its writer meant

bool has_brand(std::span<const uint8_t> content, uint32_t brand) {
  ByteReader reader(content, true);
  if (reader.u32(0) == brand) return true;
  for (size_t at = 8; at + 4 <= content.size(); at += 4) {
    if (reader.u32(at) == brand) return true;
  }
  return false;
}

// ---- Items and their properties

struct Properties {
  Size size;
  int sizes = 0, rotations = 0, mirrors = 0, codings = 0;
  int angle = 0, axis = 0;  // of `irot`, in quarters to the left, and of `imir`
  bool is_alpha = false;
  bool has_layers = false, has_unknown = false;  // unknown, and the picture is not itself without
};

bool is_alpha(std::span<const uint8_t> content) {
  for (const std::string_view name :
       {"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", "urn:mpeg:hevc:2015:auxid:1"}) {
    const std::span<const uint8_t> found =
        ByteReader(content, true).part(kVersionAndFlags, name.size() + 1);
    if (found.size() == name.size() + 1 && found.back() == 0 &&
        std::equal(name.begin(), name.end(), found.begin())) {
      return true;
    }
  }
  return false;
}

bool read_avif_size(std::span<const uint8_t> content, Size& size) {
  ByteReader reader(content, true);
  const uint32_t width = reader.u32(4), height = reader.u32(8);
  size = {static_cast<int>(width), static_cast<int>(height)};
  return !reader.went_outside() && width > 0 && height > 0 && width <= kMaxAv1Side &&
         height <= kMaxAv1Side;
}

DecodeStatus read_properties(const AvifItems& items, uint32_t item, Properties& found) {
  constexpr uint32_t kHarmless[] = {box_type("colr"), box_type("pasp"), box_type("clap"),
                                    box_type("pixi")};
  bool is_good = true;
  const bool are_there = items.each_property(
      item, [&](uint32_t type, std::span<const uint8_t> content, bool is_essential) {
        ByteReader reader(content, true);
        if (type == box_type("ispe")) {
          ++found.sizes;
          is_good &= read_avif_size(content, found.size);
        } else if (type == box_type("irot")) {
          ++found.rotations;
          found.angle = reader.u8(0) & 3;
        } else if (type == box_type("imir")) {
          ++found.mirrors;
          found.axis = reader.u8(0) & 1;
        } else if (type == box_type("av1C")) {
          ++found.codings;
        } else if (type == box_type("auxC")) {
          found.is_alpha = is_alpha(content);
        } else if (type == box_type("a1op") || type == box_type("a1lx") ||
                   type == box_type("lsel")) {
          found.has_layers = true;
        } else {
          found.has_unknown |= is_essential && std::find(std::begin(kHarmless), std::end(kHarmless),
                                                         type) == std::end(kHarmless);
        }
        is_good &= !reader.went_outside();
      });
  if (!are_there || !is_good || found.sizes != 1) return bad_avif("properties of a picture");
  if (found.rotations > 1 || found.mirrors > 1) return bad_avif("a picture is turned twice");
  if (found.has_layers) return unsupported_avif("layers");
  if (found.has_unknown) return unsupported_avif("properties that are not known");
  return {};
}

// Pillow 13 takes the rotation first, whatever the order in the file.
int orientation_of(const Properties& properties) {
  // [mirrored: not, top to bottom, left to right][quarters to the left]
  constexpr int kOrientations[3][4] = {{1, 8, 3, 6}, {4, 5, 2, 7}, {2, 7, 4, 5}};
  const int mirror = properties.mirrors == 0 ? 0 : properties.axis == 0 ? 1 : 2;
  return kOrientations[mirror][properties.angle];
}

// A coded picture, or a grid of them, which are its cells.
struct Picture {
  uint32_t item = 0;
  Properties properties;
  Size cell;
  int64_t cells = 0;  // 0: no grid
};

// Calls take(item) for each cell of a grid, in the order of the rows.
template <class Take>
void each_cell(const AvifItems& items, uint32_t grid, const Take& take) {
  items.each_reference([&](uint32_t type, uint32_t from, uint32_t to) {
    if (type == box_type("dimg") && from == grid) take(to);
  });
}

// libavif before 1.1 takes the cells in the order in which it meets the items, newer versions and
// Pillow 13 in the order of the references. So a grid is read where the two are the same.
DecodeStatus read_cells(const AvifItems& items, Picture& picture) {
  DecodeStatus status;
  uint32_t last = 0;  // no item has this number
  each_cell(items, picture.item, [&](uint32_t cell) {
    Properties properties;
    if (!status.ok()) return;
    status = items.type(cell) == kCoded ? read_properties(items, cell, properties)
                                        : unsupported_avif("a grid of other than AV1");
    const bool is_first = picture.cells++ == 0;
    if (is_first) picture.cell = properties.size;
    if (status.ok() && properties.size != picture.cell) {
      status = bad_avif("a grid whose cells differ in size");
    }
    if (status.ok() && (cell <= last || !items.are_listed_in_order(last, cell))) {
      status = unsupported_avif("the cells of a grid in another order than their items");
    }
    last = cell;
  });
  if (status.ok() && picture.cells == 0) return bad_avif("a grid without cells");
  return status;
}

DecodeStatus read_picture(const AvifItems& items, uint32_t item, Picture& picture) {
  picture.item = item;
  const uint32_t type = items.type(item);
  if (type != kCoded && type != kGrid) return unsupported_avif("other than AV1");
  const DecodeStatus status = read_properties(items, item, picture.properties);
  if (!status.ok()) return status;
  if (type == kGrid) return read_cells(items, picture);
  picture.cell = picture.properties.size;
  return picture.properties.codings == 1 ? status : bad_avif("no coding of AV1");
}

struct Pictures {
  Picture colours, alpha;
  bool has_alpha = false;
};

// Finds the alpha of the picture. libavif 0.11 does not see alpha of single cells.
DecodeStatus read_alpha(const AvifItems& items, Pictures& pictures) {
  DecodeStatus status;
  int alphas = 0;
  items.each_reference([&](uint32_t type, uint32_t from, uint32_t to) {
    if (!status.ok() || type != box_type("auxl")) return;
    Properties properties;
    const DecodeStatus found = read_properties(items, from, properties);
    if (!properties.is_alpha) return;
    each_cell(items, pictures.colours.item, [&](uint32_t cell) {
      if (cell == to) status = unsupported_avif("alpha of single cells of a grid");
    });
    if (!status.ok() || to != pictures.colours.item) return;
    status = ++alphas > 1 ? unsupported_avif("several kinds of alpha") : found;
    if (status.ok()) status = read_picture(items, from, pictures.alpha);
  });
  pictures.has_alpha = alphas > 0;
  if (status.ok() && pictures.has_alpha &&
      pictures.alpha.properties.size != pictures.colours.properties.size) {
    return unsupported_avif("alpha of another size");
  }
  return status;
}

// ---- The whole file

// Finds the box `meta`, and its items. `is_complete`: no box is cut short.
DecodeStatus open_items(std::span<const uint8_t> bytes, AvifItems& items, bool& is_complete) {
  AvifBox box, meta;
  size_t at = 0;
  is_complete = true;
  if (!next_box(bytes, at, box) || box.is_cut) return cut_short(bytes.size());
  constexpr uint32_t kStill = box_type("avif"), kSequence = box_type("avis");
  ByteReader brands(box.content, true);
  if (brands.u32(0) == kSequence || !has_brand(box.content, kStill)) {
    return unsupported_avif("a sequence of pictures");
  }
  while (next_box(bytes, at, box)) {
    is_complete &= !box.is_cut;
    if (box.type == box_type("moov")) return unsupported_avif("a sequence of pictures");
    if (box.type != box_type("meta")) continue;
    if (meta.type != 0) return bad_avif("several boxes `meta`");
    if (box.is_cut) return cut_short(bytes.size());
    meta = box;
  }
  is_complete &= at == bytes.size();
  if (meta.type == 0) return cut_short(bytes.size());
  return items.open(bytes, meta.content);
}

DecodeStatus read_pictures(std::span<const uint8_t> bytes, AvifItems& items, bool& is_complete,
                           Pictures& pictures) {
  DecodeStatus status = open_items(bytes, items, is_complete);
  if (status.ok()) status = read_picture(items, items.primary(), pictures.colours);
  return status.ok() ? read_alpha(items, pictures) : status;
}

// dav1d makes frames of whole blocks of 128 by 128 pixels.
int64_t padded_pixels(Size size) {
  constexpr int64_t kBlock = 128;
  return (size.width + kBlock - 1) / kBlock * kBlock *
         ((size.height + kBlock - 1) / kBlock * kBlock);
}

// libavif gets the size of the picture as the limit for what it decodes.
constexpr int64_t kMaxPixels = int64_t{1} << 28;  // of a picture that it takes

bool are_cells_larger(const Picture& picture) {
  const Size size = picture.properties.size, cell = picture.cell;
  const int longest = std::max(size.width, size.height);
  return std::max(cell.width, cell.height) > longest ||
         int64_t{cell.width} * cell.height > int64_t{size.width} * size.height;
}

// A decoder of its own for each cell takes 430 KB (dav1d 1.0), which must not be much beside what
// the pixels take.
DecodeStatus check_cells(const Pictures& pictures) {
  constexpr int64_t kFewCells = 16, kMinPixels = 256 * 256;
  const int64_t cells = pictures.colours.cells + pictures.alpha.cells;
  for (const Picture* picture : {&pictures.colours, &pictures.alpha}) {
    const Size cell = picture->cell;
    if (are_cells_larger(*picture)) {
      return unsupported_avif("cells that are larger than the picture");
    }
    if (picture->cells == 0 || cells <= kFewCells ||
        int64_t{cell.width} * cell.height >= kMinPixels) {
      continue;
    }
    return unsupported_avif(std::to_string(cells) + " cells, some of " +
                            std::to_string(cell.width) + "x" + std::to_string(cell.height) +
                            " pixels: they are too small");
  }
  return {};
}

// libavif takes up to 31 bytes for a pixel: two frames of 12 bits with alpha (of the cells, and of
// the picture that they become), one of 8 bits, RGBA and RGB. Small pictures may fill a block.
int64_t planned_pixels(const Pictures& pictures) {
  constexpr int64_t kShare = 4, kSpare = 1 << 17;
  int64_t most = 0;
  for (const Picture* picture : {&pictures.colours, &pictures.alpha}) {
    const Size size = picture->properties.size;
    const int64_t frames = padded_pixels(picture->cell) * std::max<int64_t>(picture->cells, 1);
    most = std::max({most, int64_t{size.width} * size.height, frames - kSpare});
  }
  return kShare * most;
}

// Reads how a grid is laid out, and checks that it fits.
DecodeStatus check_grid(std::span<const uint8_t> data, const Picture& picture) {
  constexpr uint8_t kLong = 1;
  ByteReader reader(data, true);
  const bool is_long = (reader.u8(1) & kLong) != 0;
  const uint32_t width = is_long ? reader.u32(4) : reader.u16(4);
  const uint32_t height = is_long ? reader.u32(8) : reader.u16(6);
  const int64_t rows = reader.u8(2) + 1, columns = reader.u8(3) + 1;
  const Size size = picture.properties.size;
  if (reader.went_outside() || reader.u8(0) != 0 || rows * columns != picture.cells ||
      width != static_cast<uint32_t>(size.width) || height != static_cast<uint32_t>(size.height)) {
    return bad_avif("a grid that does not fit its cells");
  }
  return {};
}

DecodeStatus check_coded(std::span<const uint8_t> bytes, const AvifItems& items, uint32_t item,
                         Size size) {
  std::span<const uint8_t> data;
  DecodeStatus status = items.data(item, data);
  if (!status.ok()) return status;
  Size coded;
  status = read_av1_header(data, coded);
  if (status.byte_offset >= 0) status.byte_offset += data.data() - bytes.data();
  if (!status.ok()) return status;
  if (coded != size) return unsupported_avif("a picture of another size than its box says");
  return status;
}

DecodeStatus check_picture(std::span<const uint8_t> bytes, const AvifItems& items,
                           const Picture& picture) {
  if (picture.cells == 0) {
    return check_coded(bytes, items, picture.item, picture.properties.size);
  }
  std::span<const uint8_t> data;
  DecodeStatus status = items.data(picture.item, data);
  if (status.ok()) status = check_grid(data, picture);
  each_cell(items, picture.item, [&](uint32_t cell) {
    if (status.ok()) status = check_coded(bytes, items, cell, picture.cell);
  });
  return status;
}

}  // namespace

bool is_avif(std::span<const uint8_t> bytes) {
  AvifBox box;
  size_t at = 0;
  if (!next_box(bytes, at, box) || box.type != box_type("ftyp")) return false;
  ByteReader reader(box.content, true);
  const uint32_t first = reader.u32(0);
  constexpr uint32_t kStill = box_type("avif"), kSequence = box_type("avis");
  if (first == kStill || first == kSequence) return true;
  // These say that the file has pictures; others say of what kind.
  return (first == box_type("mif1") || first == box_type("msf1")) &&
         (has_brand(box.content, kStill) || has_brand(box.content, kSequence));
}

DecodeStatus read_avif_header(std::span<const uint8_t> bytes, AvifHeader& header) {
  AvifItems items;
  Pictures pictures;
  bool is_complete = false;
  DecodeStatus status = read_pictures(bytes, items, is_complete, pictures);
  if (status.ok()) status = check_cells(pictures);
  if (!status.ok()) return status;
  header.size = pictures.colours.properties.size;
  if (int64_t{header.size.width} * header.size.height > kMaxPixels) {
    return {DecodeCode::too_large, -1, "more pixels than libavif decodes"};
  }
  header.orientation = orientation_of(pictures.colours.properties);
  header.planned_pixels = planned_pixels(pictures);
  return {};
}

DecodeStatus check_avif_body(std::span<const uint8_t> bytes) {
  AvifItems items;
  Pictures pictures;
  bool is_complete = false;
  DecodeStatus status = read_pictures(bytes, items, is_complete, pictures);
  if (status.ok() && !is_complete) return cut_short(bytes.size());
  if (status.ok()) status = check_picture(bytes, items, pictures.colours);
  if (status.ok() && pictures.has_alpha) {
    status = check_picture(bytes, items, pictures.alpha);
  }
  return status;
}

}  // namespace stoker
