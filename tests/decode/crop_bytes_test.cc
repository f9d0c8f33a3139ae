// The bytes that a crop needs of a file: enough for every crop of every kind of file, the pixels of
// the whole file, and never a picture of bytes that are not there or not the file's.
#include "decode/jpeg/crop_bytes.h"

#include <gtest/gtest.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <random>

#include "decode/crop_decoder.h"
#include "decode/image_decoder.h"
#include "decode/resize/resample_table.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/decode/jpeg_recoder.h"
#include "tests/decode/random_spec.h"

namespace stoker {
namespace {

constexpr int64_t kBytesMaxPixels = 1 << 24;

using Bytes = std::vector<uint8_t>;

// A crop, of which a window of 24 x 24 pixels is made.
CropSpec window_spec(Size image, std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  CropSpec spec{{}, {24 + below(300), 24 + below(300)}, {0, 0, 24, 24}};
  spec.crop = random_box(image, random);
  spec.window.x = below(spec.resized.width - 23);
  spec.window.y = below(spec.resized.height - 23);
  spec.flip = below(2) == 0;
  spec.filter = static_cast<Filter>(below(kFilterCount));
  return spec;
}

// Copies of exactly the needed bytes, so that ASan notices a read of others.
struct Pieces {
  Pieces(const Bytes& file, const CropBytes& needed)
      : head(file.begin() + static_cast<ptrdiff_t>(needed.head.begin),
             file.begin() + static_cast<ptrdiff_t>(needed.head.end)),
        body(file.begin() + static_cast<ptrdiff_t>(needed.body.begin),
             file.begin() + static_cast<ptrdiff_t>(needed.body.end)) {
    view.file_bytes = file.size();
    view.head = head;
    view.body = body;
    view.body_at = needed.body.begin;
  }
  Bytes head, body;
  FilePieces view;
};

class CropBytesTest : public ::testing::Test {
 protected:
  Bytes index_of(const Bytes& file, SeekStep step = SeekStep::row) {
    Bytes index;
    EXPECT_TRUE(builder_.build(file, step, index));
    return index;
  }

  bool find(const Bytes& index, const CropSpec& spec, CropBytes& needed) const {
    SeekIndex seek;
    return seek.open(index) && find_crop_bytes(seek, source_box(spec), needed);
  }

  SeekIndexBuilder builder_;
  CropDecoder decoder_{kBytesMaxPixels, PixelPolicy::fast};
  Pixels plain_{{24, 24}}, made_{{24, 24}};
};

TEST(SourceBox, HasEveryPixelThatTheFiltersTake) {
  std::mt19937 random(1);
  ResampleTable across, down;
  int smaller = 0;
  for (int i = 0; i < 3000; ++i) {
    const CropSpec spec = window_spec({1 + static_cast<int>(random() % 900), 700}, random);
    build_resample_tables(spec, across, down);
    const Box box = source_box(spec);
    EXPECT_LE(box.x, spec.crop.x + across.source_begin);
    EXPECT_GE(box.x + box.width, spec.crop.x + across.source_end);
    EXPECT_LE(box.y, spec.crop.y + down.source_begin);
    EXPECT_GE(box.y + box.height, spec.crop.y + down.source_end);
    EXPECT_TRUE(box.x >= spec.crop.x && box.y >= spec.crop.y);
    EXPECT_TRUE(box.x + box.width <= spec.crop.x + spec.crop.width &&
                box.y + box.height <= spec.crop.y + spec.crop.height);
    smaller += box.height < spec.crop.height;
  }
  EXPECT_GT(smaller, 2000);
}

TEST_F(CropBytesTest, AreEnoughForEveryKindOfFileAndPolicy) {
  std::mt19937 random(2);
  CropDecoder exact(kBytesMaxPixels, PixelPolicy::exact);
  int in_pieces = 0, with_gap = 0, crops = 0;
  for (const auto& [x, y] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}, {1, 4}}) {
    for (const int interval : {0, 7, 1000}) {
      JpegKind kind{.quality = 97, .sampling_x = x, .sampling_y = y};
      if (interval == 1000 && x == y) kind.colours = JpegColours::gray;
      const Size size{500 + static_cast<int>(random() % 200), 600};
      const Bytes file = recode_jpeg(make_jpeg(size, kind, random() % 1000), {interval, true});
      SCOPED_TRACE(describe(kind) + " restart " + std::to_string(interval));
      for (int trial = 0; trial < 24; ++trial, ++crops) {
        const Bytes index = index_of(file, trial % 2 == 0 ? SeekStep::row : SeekStep::eight);
        const CropSpec spec = window_spec(size, random);
        CropDecoder& decoder = trial % 3 == 0 ? exact : decoder_;
        CropBytes needed;
        if (!find(index, spec, needed)) continue;
        EXPECT_LE(needed.size() + kMinUnreadBytes, file.size());
        // Very strong reductions are none of this decoder's business.
        if (!decoder.decode(file, spec, plain_.view())) continue;
        const Pieces pieces(file, needed);
        EXPECT_TRUE(decoder.decode_pieces(pieces.view, spec, made_.view(), Bytes(index)));
        EXPECT_EQ(made_.packed(), plain_.packed());
        ++in_pieces;
        with_gap += needed.body != needed.head;
      }
    }
  }
  EXPECT_GT(in_pieces, crops / 2);
  EXPECT_GT(with_gap, crops / 4);
  const SeekUse use = decoder_.seek_use();
  EXPECT_EQ(use.refused, 0);
  EXPECT_GE(use.unread_bytes, static_cast<int64_t>(kMinUnreadBytes) * use.used);
}

class DamagedPieces : public CropBytesTest {
 protected:
  void SetUp() override {
    JpegKind kind;
    kind.sampling_x = kind.sampling_y = 2;
    kind.quality = 97;
    file_ = make_jpeg({700, 900}, kind);
    index_ = index_of(file_);
    ASSERT_TRUE(find(index_, spec_, needed_));
    ASSERT_NE(needed_.head, needed_.body);
    ASSERT_TRUE(decoder_.decode(file_, spec_, plain_.view()));
  }
  bool decode(const FilePieces& pieces) {
    return decoder_.decode_pieces(pieces, spec_, made_.view(), index_);
  }

  const CropSpec spec_{{100, 400, 200, 150}, {24, 24}, {0, 0, 24, 24}};
  Bytes file_, index_;
  CropBytes needed_;
};

TEST_F(DamagedPieces, AreNotTaken) {
  std::mt19937 random(3);
  ASSERT_TRUE(decode(Pieces(file_, needed_).view));
  for (int trial = 0; trial < 300; ++trial) {
    Pieces pieces(file_, needed_);
    Bytes& run = trial % 2 == 0 ? pieces.head : pieces.body;
    run[random() % run.size()] ^= static_cast<uint8_t>(1u << random() % 8);
    EXPECT_FALSE(decode(pieces.view)) << trial;
  }
}

TEST_F(DamagedPieces, DoNotSeeWhatIsNotThere) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 50; ++trial) {
    Bytes bad = file_;
    const size_t gap = needed_.body.begin - needed_.head.end;
    const size_t at = trial % 2 == 0
                          ? needed_.head.end + random() % gap
                          : needed_.body.end + random() % (bad.size() - needed_.body.end);
    bad[at] ^= 0x55;
    EXPECT_TRUE(decode(Pieces(bad, needed_).view));
    EXPECT_EQ(made_.packed(), plain_.packed());
  }
}

TEST_F(DamagedPieces, ThatAreTooFewAreNotTaken) {
  CropBytes less = needed_;
  less.body.end -= kSeekBlock;
  EXPECT_FALSE(decode(Pieces(file_, less).view));
  less = needed_;
  less.body.begin += kSeekBlock;
  EXPECT_FALSE(decode(Pieces(file_, less).view));
  less = needed_;
  less.head.end = 100;
  EXPECT_FALSE(decode(Pieces(file_, less).view));
  // Parts of blocks cannot be checked.
  for (const size_t shift : {1, 100, 4096}) {
    less = needed_;
    less.body.begin -= shift;
    EXPECT_FALSE(decode(Pieces(file_, less).view)) << shift;
    less = needed_;
    less.body.end += shift;
    EXPECT_FALSE(decode(Pieces(file_, less).view)) << shift;
  }
  // They are no file, so nothing else decodes them.
  Pixels whole({24, 24});
  const Pieces pieces(file_, needed_);
  EXPECT_FALSE(decoder_.decode_pieces(pieces.view, spec_, whole.view(), {}));
  ImageDecoder decoder({.pixels = PixelPolicy::fast});
  EXPECT_FALSE(decoder.decode_pieces(pieces.view, spec_, whole.view(), Bytes(index_.size())));
  EXPECT_TRUE(decoder.decode_pieces(pieces.view, spec_, whole.view(), index_));
  EXPECT_EQ(whole.packed(), plain_.packed());
}

TEST_F(DamagedPieces, OfAnotherSizeAreNotTaken) {
  Pieces pieces(file_, needed_);
  ++pieces.view.file_bytes;
  EXPECT_FALSE(decode(pieces.view));
  pieces.view.file_bytes = needed_.body.end;
  EXPECT_FALSE(decode(pieces.view));
  pieces.view.file_bytes = 0;
  EXPECT_FALSE(decode(pieces.view));
}

TEST_F(DamagedPieces, AForgedIndexFindsBytesInsideTheFile) {
  std::mt19937 random(5);
  int found = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    Bytes index = index_;
    const size_t sealed = index.size() - 8;
    // The numbers in front, or the places, but not the sums.
    const size_t places = sealed - 4 * ((file_.size() + kSeekBlock - 1) / kSeekBlock);
    const size_t end = trial % 2 == 0 ? 40 : places;
    for (int i = 0; i < 2; ++i) index[random() % end] = static_cast<uint8_t>(random());
    const uint64_t seal = XXH3_64bits(index.data(), sealed);
    std::memcpy(index.data() + sealed, &seal, sizeof seal);
    CropBytes needed;
    SeekIndex seek;
    if (!seek.open(index) || !find_crop_bytes(seek, source_box(spec_), needed)) continue;
    ++found;
    const size_t bytes = seek.file().bytes;
    ASSERT_LE(needed.head.end, bytes);
    ASSERT_TRUE(needed.body.begin < needed.body.end && needed.body.end <= bytes);
    if (bytes != file_.size()) continue;
    decoder_.decode_pieces(Pieces(file_, needed).view, spec_, made_.view(), index);
  }
  EXPECT_GT(found, 300);
}

// Though all bytes are there that are needed: what follows would be taken for a new index.
TEST_F(CropBytesTest, BelowTheRowsOfTheIndexAreNotTaken) {
  JpegKind kind{.quality = 97};
  const Bytes file = make_jpeg({600, 800}, kind);
  decoder_.record_places();
  const CropSpec upper{{0, 0, 600, 400}, {24, 24}, {0, 0, 24, 24}};
  ASSERT_TRUE(decoder_.decode(file, upper, made_.view()));
  const std::span<const uint8_t> recorded = decoder_.recorded_index();
  const Bytes index(recorded.begin(), recorded.end());
  const CropSpec spec{{200, 380, 100, 420}, {24, 24}, {0, 0, 24, 24}};
  CropBytes needed;
  ASSERT_TRUE(find(index_of(file), spec, needed));
  ASSERT_EQ(needed.body.end, file.size());
  EXPECT_FALSE(decoder_.decode_pieces(Pieces(file, needed).view, spec, made_.view(), index));
  EXPECT_TRUE(decoder_.recorded_index().empty());
}

TEST_F(CropBytesTest, AreNotKnownBelowTheRowsOfTheIndex) {
  JpegKind kind{.quality = 97};
  const Bytes file = make_jpeg({600, 800}, kind);
  CropDecoder recording(kBytesMaxPixels, PixelPolicy::fast);
  recording.record_places();
  const CropSpec upper{{0, 0, 600, 400}, {24, 24}, {0, 0, 24, 24}};
  ASSERT_TRUE(recording.decode(file, upper, made_.view()));
  const std::span<const uint8_t> recorded = recording.recorded_index();
  const Bytes index(recorded.begin(), recorded.end());
  CropBytes needed;
  EXPECT_TRUE(find(index, {{200, 250, 100, 100}, {24, 24}, {0, 0, 24, 24}}, needed));
  EXPECT_FALSE(find(index, {{200, 350, 100, 100}, {24, 24}, {0, 0, 24, 24}}, needed));
  EXPECT_FALSE(find(index, {{200, 450, 100, 100}, {24, 24}, {0, 0, 24, 24}}, needed));
}

TEST_F(CropBytesTest, OfSmallFilesAreNotWorthIt) {
  const Size size{200, 160};
  const Bytes file = make_jpeg(size, {});
  ASSERT_LT(file.size(), kMinUnreadBytes);
  CropBytes needed;
  EXPECT_FALSE(find(index_of(file), {{0, 0, 16, 16}, {24, 24}, {0, 0, 24, 24}}, needed));
}

}  // namespace
}  // namespace stoker
