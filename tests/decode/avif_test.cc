// AVIF: what is read, accepted and refused before libavif sees a file.
// (codec_plugin_test.cc has the plugin, golden_test.cc Pillow's pixels.)
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "decode/codec/avif_file.h"
#include "decode/image_decoder.h"
#include "tests/decode/avif_maker.h"
#include "tests/decode/pixels.h"
#include "tests/decode/process_memory.h"

namespace stoker {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr Size kAvifSize{23, 17};

Bytes golden_avif(const std::string& name) {
  return read_file(std::string(STOKER_GOLDEN_DIR) + "/decode/avifs/" + name);
}

// Decodes all of a picture of up to 4,096 pixels, as far as the header allows.
DecodeStatus decode_avif(const Bytes& file, std::vector<uint8_t>* pixels = nullptr,
                         int64_t max_pixels = 1'000'000) {
  ImageDecoder decoder({.max_pixels = max_pixels});
  ImageInfo info;
  const DecodeStatus status = decoder.info(file, info);
  if (!status.ok()) return status;
  Pixels out(info.size);
  const DecodeStatus decoded =
      decoder.decode(file, plain_crop({0, 0, info.size.width, info.size.height}), out.view());
  if (pixels != nullptr) *pixels = out.packed();
  return decoded;
}

// The status of a file's header and structure, without its pixels.
DecodeStatus check(const Bytes& file) {
  AvifHeader header;
  const DecodeStatus status = read_avif_header(file, header);
  return status.ok() ? check_avif_body(file) : status;
}

AvifParts parts_of(const std::string& name) {
  const Bytes file = golden_avif(name);
  return AvifParts(content_of(file, "mdat"), kAvifSize, content_of(file, "av1C"));
}
AvifParts plain_parts() { return parts_of("420_full.avif"); }

Bytes repeated(const Bytes& bytes, int count) {
  Bytes out;
  for (int i = 0; i < count; ++i) out = out + bytes;
  return out;
}

// The turned picture is what exif_transpose() makes of it.
TEST(Avif, TurnsByItsOwnOrientation) {
  if (!STOKER_HAS_AVIF) GTEST_SKIP() << "this build has no libavif";
  const Bytes file = golden_avif("turned_1_rgb.avif");  // a quarter to the left
  std::vector<uint8_t> stored;
  ASSERT_TRUE(decode_avif(file, &stored).ok());
  ImageDecoder turning({.exif = ExifPolicy::apply});
  Pixels out({17, 23});
  ASSERT_TRUE(turning.decode(file, plain_crop({0, 0, 17, 23}), out.view()).ok());
  for (int y = 0; y < 23; ++y) {
    for (int x = 0; x < 17; ++x) {
      const uint8_t* expected = stored.data() + 3 * (x * 23 + 22 - y);
      ASSERT_TRUE(std::equal(expected, expected + 3, out.pixel(x, y))) << x << "," << y;
    }
  }
}

TEST(Avif, FilesPutTogetherHereAreThoseOfTheGoldenFile) {
  EXPECT_EQ(check(plain_parts().file()).message, "");
  if (!STOKER_HAS_AVIF) GTEST_SKIP() << "this build has no libavif";
  std::vector<uint8_t> expected, found;
  ASSERT_TRUE(decode_avif(golden_avif("420_full.avif"), &expected).ok());
  ASSERT_TRUE(decode_avif(plain_parts().file(), &found).ok());
  EXPECT_EQ(found, expected);
}

TEST(Avif, ABoxThatIsCutBehindThePictureIsSeen) {
  const Bytes longer = golden_avif("420_full.avif") + be32(99) + avif_text("free");
  EXPECT_EQ(decode_avif(longer).code, DecodeCode::truncated);
}

// Whatever a bit says, the decoder ends with pixels or with a status, and a used one and a fresh
// one agree. Nothing is printed.
TEST(Avif, FlippedBitsDoNoHarm) {
  ImageDecoder used({.max_pixels = 100'000});
  ::testing::internal::CaptureStderr();
  for (const char* name : {"420_full.avif", "444_10_multiplied.avif"}) {
    const Bytes file = golden_avif(name);
    int read = 0;
    for (size_t bit = 0; bit < 8 * file.size(); bit += 1 + bit % 3) {
      Bytes flipped = file;
      flipped[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      ImageDecoder fresh({.max_pixels = 100'000});
      ImageInfo info;
      if (!fresh.info(flipped, info).ok()) continue;
      const CropSpec spec = plain_crop({0, 0, info.size.width, info.size.height});
      Pixels first(info.size, 3), second(info.size, 3);
      const DecodeStatus status = fresh.decode(flipped, spec, first.view());
      ASSERT_EQ(used.decode(flipped, spec, second.view()).code, status.code) << name << " " << bit;
      if (!status.ok()) continue;
      ++read;
      ASSERT_EQ(first.packed(), second.packed()) << name << " " << bit;
    }
    EXPECT_GE(read, STOKER_HAS_AVIF ? 50 : 0) << name;
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Avif, OnlyStillPicturesOfItsBrandsAreAvif) {
  const auto with_brands = [](const Bytes& brands) {
    AvifParts parts = plain_parts();
    parts.brands = brands;
    return check(parts.file());
  };
  const Bytes still = avif_text("avif"), sequence = avif_text("avis"), any = avif_text("mif1");
  EXPECT_EQ(with_brands(any + be32(0) + still).message, "");
  EXPECT_EQ(with_brands(sequence + be32(0) + sequence + still).code, DecodeCode::unsupported);
  EXPECT_EQ(with_brands(any + be32(0) + sequence).code, DecodeCode::unsupported);
  const auto is_known = [](const Bytes& brands) {
    AvifParts parts = plain_parts();
    parts.brands = brands;
    return is_avif(parts.file());
  };
  EXPECT_TRUE(is_known(still + be32(0)));
  EXPECT_TRUE(is_known(sequence + be32(0)));
  EXPECT_TRUE(is_known(any + be32(0) + any + still));
  EXPECT_TRUE(is_known(avif_text("msf1") + be32(0) + sequence));
  EXPECT_FALSE(is_known(any + be32(0) + avif_text("heic")));
  EXPECT_FALSE(is_known(avif_text("heic") + be32(0) + still));  // as for Pillow
  EXPECT_FALSE(is_avif(avif_box("free", still)));
  EXPECT_FALSE(is_avif({}));
}

// Each line changes one thing of a good file.
TEST(Avif, BoxesInOtherFormsAreTheSameFile) {
  const uint32_t length = static_cast<uint32_t>(plain_parts().coded.size());
  std::vector<AvifParts> files(8, plain_parts());
  files[0].places = avif_full_box("iloc", 1,
                                  be16(0x4440) + be16(1) + be16(1) + be16(0) + be16(0) + be32(30) +
                                      be16(1) + be32(AvifParts::kCodedAt - 30) + be32(length));
  files[1].places = avif_full_box("iloc", 2,
                                  be16(0x8880) + be32(1) + be32(1) + be16(0) + be16(0) + be64(0) +
                                      be16(1) + be64(AvifParts::kCodedAt) + be64(length));
  files[2].places = avif_full_box(
      "iloc", 1,
      be16(0x4400) + be16(1) + be16(1) + be16(1) + be16(0) + be16(1) + be32(2) + be32(length));
  files[2].more_meta = avif_box("idat", be16(0) + files[2].coded);
  files[3].primary = avif_full_box("pitm", 1, be32(1));
  files[4].names = avif_full_box("infe", 3, be32(1) + be16(0) + avif_text("av01") + Bytes{0});
  files[5].uses = be16(1) + Bytes{3, 1, 0x82, 0};  // 0 is no property
  files[6].properties = files[6].properties + avif_full_box("what", 0, be32(9));
  files[6].uses = be16(1) + Bytes{3, 1, 0x82, 3};  // unknown, but the picture does not need it
  files[7].before_meta =
      be32(1) + avif_text("free") + be64(20) + be32(0) + avif_box("uuid", Bytes(16, 9));
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(check(files[i].file()).message, "") << i;
    if (!STOKER_HAS_AVIF) continue;
    std::vector<uint8_t> expected, found;
    ASSERT_TRUE(decode_avif(plain_parts().file(), &expected).ok());
    const DecodeStatus status = decode_avif(files[i].file(), &found);
    ASSERT_TRUE(status.ok()) << i << status.message;
    EXPECT_EQ(found, expected) << i;
  }
}

// A few bytes that promise much, and what libavif would make of it.
TEST(Avif, Bombs) {
  struct Bomb {
    const char* name;
    DecodeCode code;
    const char* says;  // is in the message
    AvifParts parts = plain_parts();
  };
  using enum DecodeCode;
  std::vector<Bomb> bombs;
  const auto bomb = [&](const char* name, DecodeCode code, const char* says = "") -> AvifParts& {
    return bombs.emplace_back(Bomb{name, code, says}).parts;
  };
  const Bytes coding = avif_box("av1C", content_of(golden_avif("420_full.avif"), "av1C"));
  const auto place = [](uint32_t sizes, const Bytes& rest) {
    return avif_full_box("iloc", 0, be16(sizes) + be16(1) + be16(1) + be16(0) + rest);
  };

  bomb("the largest picture", too_large).properties = avif_size({65536, 65536}) + coding;
  bomb("a larger one", corrupt).properties = avif_size({65537, 1}) + coding;
  bomb("no pixels", corrupt).properties = avif_size({0, 17}) + coding;
  bomb("a smaller box than the picture", unsupported).properties = avif_size({22, 17}) + coding;
  bomb("a larger box than the picture", unsupported).properties = avif_size({23, 18}) + coding;
  AvifParts& names = bomb("items", unsupported, "1024 items");
  names.name_count = 2001;
  names.names = names.names + repeated(avif_name(2, "Exif"), 2000);
  AvifParts& properties = bomb("properties", unsupported, "1024 properties");
  properties.properties = properties.properties + repeated(avif_box("free", {}), 2000);
  bomb("uses", unsupported, "1024 items with").use_count = 0xffffffff;
  bomb("uses that are not there", corrupt, "ipma").use_count = 1000;
  AvifParts& used = bomb("uses of properties", unsupported, "8 properties each");
  used.use_count = 34;
  used.uses = used.uses + repeated(be16(2) + Bytes{255} + Bytes(255, 1), 32) + be16(3) + Bytes{33} +
              Bytes(33, 1);
  AvifParts& boxes = bomb("references", unsupported, "1024 boxes of references");
  boxes.references = repeated(avif_box("cdsc", be16(2) + be16(1) + be16(1)), 2000);
  AvifParts& targets = bomb("targets", unsupported, "1024 references");
  targets.references = avif_box("cdsc", be16(2) + be16(0xffff) + Bytes(2 * 0xffff, 1));
  bomb("extents of no bytes", corrupt, "iloc").places = place(0x0000, be16(0xffff));
  bomb("extents", unsupported, "1024 places").places =
      place(0x0400, be16(2000) + repeated(be32(1), 2000));
  bomb("extents that are not there", corrupt).places = place(0x4400, be16(0xffff) + be32(40));
  bomb("two extents", unsupported).places =
      place(0x4400, be16(2) + be32(40) + be32(20) + be32(60) + be32(20));
  bomb("places that are not there", corrupt).places =
      avif_full_box("iloc", 2, be16(0x4400) + be32(0xffffffff) + be32(1));
  bomb("numbers of five bytes", corrupt).places = place(0x5400, be16(1) + Bytes(9, 1));
  bomb("an offset beyond all numbers", corrupt, "iloc").places =
      place(0x8880, be64(~uint64_t{0}) + be16(1) + be64(41) + be64(20));
  bomb("an end beyond the file", truncated).places =
      place(0x4400, be16(1) + be32(40) + be32(0x7fffffff));
  bomb("an offset beyond the file", truncated).places =
      place(0x4400, be16(1) + be32(0x7fffffff) + be32(1));
  bomb("another file", unsupported).places = avif_full_box(
      "iloc", 0, be16(0x4400) + be16(1) + be16(1) + be16(1) + be16(1) + be32(40) + be32(20));
  bomb("data of another item", unsupported).places = avif_full_box(
      "iloc", 1,
      be16(0x4400) + be16(1) + be16(1) + be16(2) + be16(0) + be16(1) + be32(0) + be32(20));
  bomb("no place", corrupt).places = avif_full_box("iloc", 0, be16(0x4400) + be16(0));
  bomb("no such property", corrupt, "properties").uses = be16(1) + Bytes{3, 1, 0x82, 3};
  AvifParts& cut_name = bomb("a name that reaches out of its box", corrupt, "iinf");
  cut_name.names = cut_name.names + be32(99) + avif_text("free");
  bomb("no size", corrupt).uses = be16(1) + Bytes{1, 0x82};
  bomb("two sizes", corrupt).uses = be16(1) + Bytes{3, 1, 1, 0x82};
  bomb("no coding", corrupt).uses = be16(1) + Bytes{1, 1};
  bomb("no such item", unsupported).primary = avif_full_box("pitm", 0, be16(9));
  bomb("another codec", unsupported).names = avif_name(1, "hvc1");
  bomb("no picture", corrupt).handler =
      avif_full_box("hdlr", 0, be32(0) + avif_text("vide") + Bytes(13, 0));
  bomb("a second primary item", corrupt).more_meta = avif_full_box("pitm", 0, be16(1));
  bomb("a box of four bytes", corrupt).more_meta = be32(4) + avif_text("free");
  bomb("a box that reaches out of its own", corrupt).more_meta = be32(99) + avif_text("free");
  AvifParts& cut = bomb("a property that reaches out of its box", corrupt, "ipco");
  cut.properties = cut.properties + be32(99) + avif_text("free");
  bomb("a film", unsupported).before_meta = avif_box("moov", {});
  bomb("another `meta`", corrupt).before_meta = avif_full_box("meta", 0, {});
  for (const char* type : {"irot", "imir"}) {
    AvifParts& turned = bomb("turned twice", corrupt);
    turned.properties = turned.properties + avif_box(type, {1});
    turned.uses = be16(1) + Bytes{4, 1, 0x82, 0x83, 0x83};
  }
  AvifParts& unknown = bomb("an unknown property that must be known", unsupported);
  unknown.properties = unknown.properties + avif_full_box("what", 0, be32(9));
  unknown.uses = be16(1) + Bytes{3, 1, 0x82, 0x83};

  for (const Bomb& one : bombs) {
    const Bytes file = one.parts.file();
    DecodeStatus status;
    const int64_t growth = growth_during([&] { status = check(file); });
    EXPECT_EQ(status.code, one.code) << one.name << ": " << status.message;
    EXPECT_NE(status.message.find(one.says), std::string::npos) << one.name << status.message;
    EXPECT_LE(growth, kLittleGrowth) << one.name;
  }
}

// ---- The coded picture

// The units of a stream, each with its header and its length of one or two bytes.
std::vector<Bytes> units_of(const Bytes& coded) {
  std::vector<Bytes> units;
  for (size_t at = 0; at < coded.size();) {
    size_t length = coded[at + 1] & 0x7f, head = 2;
    if ((coded[at + 1] & 0x80) != 0) length |= size_t{coded[at + head++]} << 7;
    units.emplace_back(coded.begin() + static_cast<ptrdiff_t>(at),
                       coded.begin() + static_cast<ptrdiff_t>(at + head + length));
    at += head + length;
  }
  return units;
}

DecodeCode avif_code(const Bytes& coded, const AvifParts& like = plain_parts()) {
  AvifParts parts = like;
  parts.coded = coded;
  parts.places = AvifParts(coded, kAvifSize, {}).places;
  return check(parts.file()).code;
}

TEST(Avif, ACodedPictureIsOneFrame) {
  const Bytes coded = plain_parts().coded;
  const std::vector<Bytes> units = units_of(coded);
  const auto is_type = [](int type) {
    return [type](const Bytes& unit) { return unit[0] >> 3 == type; };
  };
  const auto sequence = std::find_if(units.begin(), units.end(), is_type(1));
  const auto frame = std::find_if(units.begin(), units.end(), is_type(6));
  ASSERT_TRUE(sequence != units.end() && frame != units.end());
  const Bytes good = *sequence + *frame;
  EXPECT_EQ(avif_code(coded), DecodeCode::ok);
  EXPECT_EQ(avif_code(good), DecodeCode::ok);
  EXPECT_EQ(avif_code(good + Bytes{15 << 3 | 2, 1, 0}), DecodeCode::ok);  // padding
  EXPECT_EQ(avif_code(good + repeated({15 << 3 | 2, 0}, 1022)), DecodeCode::ok);
  EXPECT_EQ(avif_code(good + repeated({15 << 3 | 2, 0}, 1023)), DecodeCode::unsupported);
  EXPECT_EQ(avif_code(good + *frame), DecodeCode::unsupported);
  for (const int type : {3, 7}) {  // headers of frames
    Bytes other = *frame;
    other[0] = static_cast<uint8_t>(type << 3 | 2);
    EXPECT_EQ(avif_code(good + other), DecodeCode::unsupported) << type;
  }
  EXPECT_EQ(avif_code(*sequence + good), DecodeCode::unsupported);
  EXPECT_EQ(avif_code(good + Bytes{8 << 3 | 2, 0}), DecodeCode::unsupported);  // a list of tiles
  EXPECT_EQ(avif_code(*sequence), DecodeCode::corrupt);
  EXPECT_EQ(avif_code(*frame + *sequence), DecodeCode::corrupt);
  EXPECT_EQ(avif_code(good + Bytes{0x80 | 15 << 3 | 2, 0}), DecodeCode::corrupt);
  EXPECT_EQ(avif_code(good + Bytes{15 << 3 | 2, 1}), DecodeCode::corrupt);
  EXPECT_EQ(avif_code(good + Bytes(9, 0xff)), DecodeCode::corrupt);
  EXPECT_EQ(avif_code(Bytes{1 << 3 | 2, 2, (*sequence)[2], (*sequence)[3]}), DecodeCode::corrupt);
  // The last unit may come without a length.
  Bytes bare = *frame;
  const size_t head = (bare[1] & 0x80) != 0 ? 3 : 2;
  bare.erase(bare.begin() + 1, bare.begin() + static_cast<ptrdiff_t>(head));
  bare[0] = 6 << 3;
  EXPECT_EQ(avif_code(*sequence + bare), DecodeCode::ok);
  // Another layer.
  Bytes layered = *frame;
  layered[0] |= 4;
  layered.insert(layered.begin() + 1, uint8_t{1 << 3});
  EXPECT_EQ(avif_code(*sequence + layered), DecodeCode::unsupported);
  layered[1] = 0;
  EXPECT_EQ(avif_code(*sequence + layered), DecodeCode::ok);
}

// Writes bits, most significant first.
class BitWriter {
 public:
  BitWriter& put(uint32_t value, int bits) {
    for (int i = bits - 1; i >= 0; --i, ++count_) {
      if (count_ % 8 == 0) bytes_.push_back(0);
      bytes_.back() |= static_cast<uint8_t>((value >> i & 1) << (7 - count_ % 8));
    }
    return *this;
  }
  Bytes unit(int type) const {
    return Bytes{static_cast<uint8_t>(type << 3 | 2), static_cast<uint8_t>(bytes_.size())} + bytes_;
  }

 private:
  Bytes bytes_;
  int count_ = 0;
};

// Headers that say all that they can, as those of films do. They are not followed by a picture.
struct LongHeader {
  bool has_timing = false, has_model = false, has_equal_intervals = false, has_delay = false;
  uint32_t points = 1, point = 0, level = 4;
  uint32_t screen_content = 2;  // 2: the frame says it
  bool has_numbers = false, has_order = false;
  // Properties of the frame.
  bool is_shown_again = false, is_shown = true, has_another_size = false;
  uint32_t frame_type = 0;

  Bytes units() const {
    BitWriter sequence;
    sequence.put(0, 3).put(0, 1).put(0, 1).put(has_timing, 1);
    if (has_timing) {
      sequence.put(1, 32).put(30, 32).put(has_equal_intervals, 1);
      if (has_equal_intervals) sequence.put(0b00101, 5);
      sequence.put(has_model, 1);
      if (has_model) sequence.put(9, 5).put(1, 32).put(7, 5).put(6, 5);
    }
    sequence.put(has_delay, 1).put(points - 1, 5);
    for (uint32_t i = 0; i < points; ++i) {
      sequence.put(point, 12).put(level, 5);
      if (level > 7) sequence.put(1, 1);
      if (has_model) sequence.put(1, 1).put(3, 10).put(5, 10).put(1, 1);
      if (has_delay) sequence.put(1, 1).put(9, 4);
    }
    sequence.put(6, 4).put(5, 4).put(22, 7).put(16, 6).put(has_numbers, 1);
    if (has_numbers) sequence.put(3, 4).put(2, 3);  // numbers of 8 bits
    sequence.put(5, 3).put(9, 4).put(has_order, 1);
    if (has_order) sequence.put(3, 2);
    sequence.put(screen_content == 2, 1);
    if (screen_content < 2) sequence.put(screen_content, 1);
    if (screen_content > 0) sequence.put(1, 1);
    if (has_order) sequence.put(6, 3);
    sequence.put(7, 3).put(0, 12);
    BitWriter frame;
    frame.put(is_shown_again, 1).put(frame_type, 2).put(is_shown, 1);
    if (has_model && !has_equal_intervals) frame.put(0x55, 7);
    frame.put(1, 1);
    if (screen_content == 2) frame.put(1, 1);
    if (screen_content > 0) frame.put(1, 1);
    if (has_numbers) frame.put(0xff, 8);
    frame.put(has_another_size, 1).put(0, 16);
    return sequence.unit(1) + frame.unit(6);
  }
};

TEST(Avif, LongHeadersAreUnderstood) {
  for (int kind = 0; kind < 192; ++kind) {
    LongHeader header;
    header.has_timing = kind % 2 == 1;
    header.has_model = kind % 4 == 3;
    header.has_equal_intervals = kind / 4 % 2 == 1;
    header.has_delay = kind / 8 % 2 == 1;
    header.has_numbers = kind / 16 % 2 == 1;
    header.has_order = kind / 32 % 2 == 1;
    header.screen_content = static_cast<uint32_t>(kind / 64);
    header.level = kind % 5 == 0 ? 8 : 7;
    EXPECT_EQ(avif_code(header.units()), DecodeCode::ok) << kind;
    header.has_another_size = true;
    EXPECT_EQ(avif_code(header.units()), DecodeCode::unsupported) << kind;
  }
  const auto code_of = [](const LongHeader& header) { return avif_code(header.units()); };
  EXPECT_EQ(code_of({.is_shown_again = true}), DecodeCode::unsupported);
  EXPECT_EQ(code_of({.is_shown = false}), DecodeCode::unsupported);
  EXPECT_EQ(code_of({.frame_type = 2}), DecodeCode::unsupported);
  EXPECT_EQ(code_of({.points = 2}), DecodeCode::unsupported);
  EXPECT_EQ(code_of({.point = 0x301}), DecodeCode::unsupported);  // two layers
  EXPECT_EQ(code_of({.point = 0x101}), DecodeCode::ok);
  const Bytes units = LongHeader{}.units();
  for (uint8_t length = 0; length < 10; ++length) {  // the sequence ends before its sizes
    Bytes cut = units;
    cut.resize(2 + size_t{length});
    cut[1] = length;
    EXPECT_EQ(avif_code(cut), DecodeCode::corrupt) << int{length};
  }
}

// ---- Grids and alpha

enum class Backwards { nothing, references, names, places, uses };

// A grid, item 1, of cells, items 2 and up. All have the data of the picture. One of the lists of
// the cells may run backwards.
AvifParts grid_parts(uint32_t rows, uint32_t columns, Size whole, Size cell,
                     Backwards backwards = Backwards::nothing) {
  AvifParts parts = plain_parts();
  const uint32_t cells = rows * columns;
  const uint32_t length = static_cast<uint32_t>(parts.coded.size());
  parts.names = avif_name(1, "grid");
  Bytes places = be16(1) + be16(1) + be16(0) + be16(1) + be32(0) + be32(8);  // in `idat`
  Bytes dimg = be16(1) + be16(cells);
  parts.uses = be16(1) + Bytes{1, 3};
  for (uint32_t i = 0; i < cells; ++i) {
    const auto item = [&](Backwards list) { return list == backwards ? 1 + cells - i : 2 + i; };
    parts.names = parts.names + avif_name(item(Backwards::names), "av01");
    places = places + be16(item(Backwards::places)) + be16(0) + be16(0) + be16(1) +
             be32(AvifParts::kCodedAt) + be32(length);
    dimg = dimg + be16(item(Backwards::references));
    parts.uses = parts.uses + be16(item(Backwards::uses)) + Bytes{2, 1, 0x82};
  }
  parts.name_count = parts.use_count = 1 + cells;
  parts.places = avif_full_box("iloc", 1, be16(0x4400) + be16(1 + cells) + places);
  parts.references = avif_box("dimg", dimg);
  parts.properties = avif_size(cell) +
                     avif_box("av1C", content_of(golden_avif("420_full.avif"), "av1C")) +
                     avif_size(whole);
  parts.more_meta = avif_box(
      "idat", Bytes{0, 0, static_cast<uint8_t>(rows - 1), static_cast<uint8_t>(columns - 1)} +
                  be16(static_cast<uint32_t>(whole.width)) +
                  be16(static_cast<uint32_t>(whole.height)));
  return parts;
}

TEST(Avif, GridsAreNotMoreThanTheySeem) {
  const AvifParts good = grid_parts(2, 2, {46, 34}, kAvifSize);
  EXPECT_EQ(check(good.file()).message, "");
  EXPECT_EQ(check(grid_parts(2, 2, {40, 30}, kAvifSize).file()).message, "");
  AvifParts bad = good;  // its size is not that of its property
  bad.more_meta = avif_box("idat", Bytes{0, 0, 1, 1} + be16(46) + be16(35));
  EXPECT_EQ(check(bad.file()).code, DecodeCode::corrupt);
  bad.more_meta = avif_box("idat", Bytes{0, 0, 255, 255} + be16(46) + be16(34));
  EXPECT_EQ(check(bad.file()).code, DecodeCode::corrupt);
  bad.more_meta = avif_box("idat", Bytes{0, 0, 1, 1} + be16(46));
  EXPECT_EQ(check(bad.file()).code, DecodeCode::truncated);
  bad.more_meta = avif_box("idat", Bytes{0, 1, 1, 1} + be32(46) + be32(34));
  EXPECT_EQ(check(bad.file()).code, DecodeCode::corrupt);  // the place has 8 bytes of these 12
  bad = good;
  bad.references = avif_box("dimg", be16(1) + be16(3) + be16(2) + be16(3) + be16(4));
  EXPECT_EQ(check(bad.file()).code, DecodeCode::corrupt);
  bad.references = avif_box("dimg", be16(1) + be16(4) + be16(2) + be16(3) + be16(4) + be16(1));
  EXPECT_EQ(check(bad.file()).code, DecodeCode::unsupported);  // a grid of itself
  bad.references.clear();
  EXPECT_EQ(check(bad.file()).code, DecodeCode::corrupt);
  bad = good;
  bad.properties = avif_size({23, 18}) + avif_box("av1C", {}) + avif_size({46, 34});
  EXPECT_EQ(check(bad.file()).code, DecodeCode::unsupported);  // another size than is coded
  bad = good;
  bad.properties = bad.properties + avif_size({22, 17});
  bad.uses.end()[-2] = 4;  // of the last cell
  EXPECT_EQ(check(bad.file()).code, DecodeCode::corrupt);
  // Cells that reach far beyond the picture: libavif's limits are those of the picture.
  EXPECT_EQ(check(grid_parts(1, 1, {20, 17}, kAvifSize).file()).code, DecodeCode::unsupported);
  EXPECT_EQ(check(grid_parts(1, 2, {24, 3}, kAvifSize).file()).code, DecodeCode::unsupported);
  // A decoder for each of many cells takes more than their pixels.
  EXPECT_EQ(check(grid_parts(4, 4, {92, 68}, kAvifSize).file()).message, "");
  const DecodeStatus small = check(grid_parts(4, 5, {115, 68}, kAvifSize).file());
  EXPECT_EQ(small.code, DecodeCode::unsupported);
  EXPECT_NE(small.message.find("20 cells, some of 23x17"), std::string::npos) << small.message;
}

// The second item is alpha of the first one.
AvifParts alpha_parts(Size size, int alphas) {
  AvifParts parts = plain_parts();
  const uint32_t length = static_cast<uint32_t>(parts.coded.size());
  const auto place = [&](uint32_t item) {
    return be16(item) + be16(0) + be16(1) + be32(AvifParts::kCodedAt) + be32(length);
  };
  Bytes places = place(1);
  parts.properties =
      parts.properties + avif_size(size) +
      avif_full_box("auxC", 0, avif_text("urn:mpeg:mpegB:cicp:systems:auxiliary:alpha") + Bytes{0});
  for (int i = 0; i < alphas; ++i) {
    const uint32_t item = static_cast<uint32_t>(i) + 2;
    parts.names = parts.names + avif_name(item, "av01");
    places = places + place(item);
    parts.references = parts.references + avif_box("auxl", be16(item) + be16(1) + be16(1));
    parts.uses = parts.uses + be16(item) + Bytes{3, 3, 0x82, 4};
  }
  const uint32_t count = static_cast<uint32_t>(alphas) + 1;
  parts.name_count = parts.use_count = count;
  parts.places = avif_full_box("iloc", 0, be16(0x4400) + be16(count) + places);
  return parts;
}

// Versions of libavif differ about which order counts: those before 1.1 gave the cells to other
// places than Pillow 13 does.
TEST(Avif, CellsComeInTheOrderOfTheirItems) {
  for (const Backwards list :
       {Backwards::references, Backwards::names, Backwards::places, Backwards::uses}) {
    const DecodeStatus status = check(grid_parts(1, 2, {46, 17}, kAvifSize, list).file());
    EXPECT_EQ(status.code, DecodeCode::unsupported) << static_cast<int>(list);
    EXPECT_NE(status.message.find("in another order"), std::string::npos) << status.message;
  }
}

TEST(Avif, AlphaIsAPictureOfTheSameSize) {
  EXPECT_EQ(check(alpha_parts(kAvifSize, 1).file()).message, "");
  EXPECT_EQ(check(alpha_parts({23, 18}, 1).file()).code, DecodeCode::unsupported);
  EXPECT_EQ(check(alpha_parts(kAvifSize, 2).file()).code, DecodeCode::unsupported);
  AvifParts other = alpha_parts(kAvifSize, 2);  // a depth map is nothing that pixels need
  other.properties =
      plain_parts().properties + avif_size({9, 9}) + avif_full_box("auxC", 0, avif_text("urn:x"));
  EXPECT_EQ(check(other.file()).message, "");
  AvifParts grid = grid_parts(1, 2, {46, 17}, kAvifSize);  // alpha of a cell
  grid.properties = grid.properties +
                    avif_full_box("auxC", 0, avif_text("urn:mpeg:hevc:2015:auxid:1") + Bytes{0});
  grid.uses.insert(grid.uses.end(), {0, 9, 3, 1, 0x82, 4});
  ++grid.use_count;
  grid.references = grid.references + avif_box("auxl", be16(9) + be16(1) + be16(3));
  EXPECT_EQ(check(grid.file()).code, DecodeCode::unsupported);
}

// ---- Memory

TEST(Avif, PixelsCountFourTimes) {
  const Bytes file = plain_parts().file();
  EXPECT_EQ(decode_avif(file, nullptr, 4 * 23 * 17 - 1).code, DecodeCode::too_large);
  AvifHeader header;
  ASSERT_TRUE(read_avif_header(file, header).ok());
  EXPECT_EQ(header.planned_pixels, 4 * 23 * 17);
  // Frames are whole blocks of 128 by 128: a line of pixels takes more than it shows.
  AvifParts line = plain_parts();
  line.properties = avif_size({1, 50'000}) + avif_box("av1C", {});
  ASSERT_TRUE(read_avif_header(line.file(), header).ok());
  EXPECT_EQ(header.planned_pixels, 4 * (128 * 50'048 - (1 << 17)));
  ASSERT_TRUE(read_avif_header(grid_parts(1, 16, {16 * 300, 1}, {300, 1}).file(), header).ok());
  EXPECT_EQ(header.planned_pixels, 4 * (16 * 384 * 128 - (1 << 17)));
  line.properties = avif_size({65'536, 4'097}) + avif_box("av1C", {});
  EXPECT_EQ(read_avif_header(line.file(), header).code, DecodeCode::too_large);
}

// 12 bits, alpha and a grid take most: 31 bytes for a pixel, of the 60 that the plan has.
TEST(Avif, MemoryKeepsToThePlan) {
  if (!STOKER_HAS_AVIF) GTEST_SKIP() << "this build has no libavif";
  constexpr int64_t kPixels = 2048 * 1536;
  const DecodeOptions options{.max_pixels = 4 * kPixels};
  const int64_t bound = decode_scratch_bound(options, {224, 224}).whole_frame;
  ASSERT_TRUE(
      decode_avif(golden_avif("420_full.avif")).ok());  // the plugin's pages are not the picture's
  for (const char* name :
       {"large.avif", "large_12_alpha.avif", "large_grid.avif", "large_grid_12_alpha.avif"}) {
    const Bytes file = golden_avif(name);
    ImageDecoder decoder(options);
    Pixels out({224, 224});
    const CropSpec spec = {{0, 0, 2048, 1536}, {224, 224}, {0, 0, 224, 224}};
    const int64_t growth = growth_during([&] {
      const DecodeStatus status = decoder.decode(file, spec, out.view());
      EXPECT_TRUE(status.ok()) << name << status.message;
    });
    EXPECT_LE(growth, bound) << name;
    EXPECT_LE(growth, 31 * kPixels + 2 * kLittleGrowth) << name;
  }
}

}  // namespace
}  // namespace stoker
