// Indexes that are forged (their seals hold, and what they say cannot be), and the samples on their
// way into one.
#include "pipeline/source/blob/blob_index.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "pipeline/source/blob/index_writer.h"
#include "pipeline/source/blob/sample_collector.h"
#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

class ForgedIndex : public ::testing::Test {
 protected:
  ForgedIndex() {
    BlobIndexWriter writer(path_);
    const std::vector<BlobEntry> entries = {{.place = 512 << 8, .length = 9, .first = 0},
                                            {.place = 999 << 8, .length = 9, .first = 2}};
    writer.add(0, 0, entries, {"a\0b\0", 4});
    writer.add(1, 0, entries, {"c\0d\0", 4});
    writer.finish({.key = "key",
                   .blobs = {"1.tar", "2.tar"},
                   .stamps = {{4096, 1}, {4096, 2}},
                   .segments = {},
                   .class_names = {"cat"},
                   .notes = {}},
                  {});
    std::ifstream file(path_, std::ios::binary);
    honest_.assign(std::istreambuf_iterator<char>(file), {});
    table_ = BlobIndex::open(path_)->table();
  }

  // Whether an index is accepted whose table `forge` has changed. The seal of the table is right.
  bool accepts(const std::function<void(BlobTable&)>& forge) const {
    BlobTable table = table_;
    forge(table);
    const std::vector<char> bytes = to_bytes(table);
    BlobIndexHeader header;
    std::memcpy(&header, honest_.data(), sizeof header);
    std::string file = honest_.substr(0, header.table_at);
    header.table_bytes = bytes.size();
    header.seal = blob_table_seal(header, bytes);
    std::memcpy(file.data(), &header, sizeof header);
    return BlobIndex::open(
               folder_.write("forged", file + std::string(bytes.begin(), bytes.end()))) != nullptr;
  }

  const TempFolder folder_;
  const std::string path_ = folder_.path() + "/index";
  std::string honest_;
  BlobTable table_;
};

TEST_F(ForgedIndex, TheHonestOneIsAccepted) {
  EXPECT_TRUE(accepts([](BlobTable&) {}));
  const auto index = BlobIndex::open(path_);
  EXPECT_EQ(index->size(), 4);
  EXPECT_EQ(index->name(index->find(3)), "d");
}

TEST_F(ForgedIndex, SegmentsLieInTheFileOneAfterTheOther) {
  const auto refused = [&](const std::function<void(BlobSegment&)>& forge) {
    return !accepts([&](BlobTable& table) { forge(table.segments[1]); });
  };
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_TRUE(refused([](BlobSegment& segment) { segment.blob = 2; }));
  EXPECT_TRUE(refused([](BlobSegment& segment) { segment.blob = -1; }));
  EXPECT_TRUE(refused([](BlobSegment& segment) { segment.first_id = 3; }));
  EXPECT_TRUE(refused([](BlobSegment& segment) { segment.first_row = -1; }));
  EXPECT_TRUE(refused([](BlobSegment& segment) { segment.samples = 0; }));
  EXPECT_TRUE(refused([](BlobSegment& segment) { segment.samples = 8'193; }));
  EXPECT_TRUE(refused([](BlobSegment& segment) { segment.at = -1; }));
  EXPECT_TRUE(refused([](BlobSegment& segment) { segment.at = kHuge; }));
  EXPECT_TRUE(refused([](BlobSegment& segment) { segment.name_bytes = -1; }));
  EXPECT_TRUE(refused([](BlobSegment& segment) { segment.name_bytes = kHuge; }));
  // The last name has no end.
  EXPECT_TRUE(refused([](BlobSegment& segment) { segment.name_bytes = 3; }));
}

TEST_F(ForgedIndex, EveryBlobHasAStampAndThereAreSamples) {
  EXPECT_FALSE(accepts([](BlobTable& table) { table.stamps.pop_back(); }));
  EXPECT_FALSE(accepts([](BlobTable& table) { table.segments.clear(); }));
}

// What a collector handed on, without the entries.
struct HandedOn {
  int64_t first_row, samples;
  std::vector<std::string> texts;
  int32_t last_label;
};

TEST(SampleCollector, HandsOnPiecesThatFollowEachOther) {
  const BlobReader blob("blob", std::span<const uint8_t>());
  std::vector<HandedOn> pieces;
  SampleCollector collector(blob, [&](SamplePiece& piece) {
    pieces.push_back(
        {piece.first_row, std::ssize(piece.entries), piece.texts, piece.entries.back().label});
  });
  for (size_t i = 0; i < SampleCollector::kPieceSamples + 2; ++i) {
    const bool is_late = i > SampleCollector::kPieceSamples;
    FoundSample sample;
    sample.length = 1;
    sample.label = std::string_view(is_late ? "late" : i % 2 == 0 ? "even" : "odd");
    collector.add(sample);
  }
  collector.finish();
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].first_row, 0);
  EXPECT_EQ(pieces[0].samples, int64_t{SampleCollector::kPieceSamples});
  EXPECT_EQ(pieces[0].last_label, 1);
  EXPECT_EQ(pieces[1].first_row, pieces[0].samples);
  EXPECT_EQ(pieces[1].samples, 2);
  EXPECT_EQ(pieces[1].texts, (std::vector<std::string>{"even", "odd", "late"}));
  EXPECT_EQ(pieces[1].last_label, 2);
}

}  // namespace
}  // namespace stoker
