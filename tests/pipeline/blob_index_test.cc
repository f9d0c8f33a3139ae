// Indexes that are forged (their seals hold, and what they say cannot be), and the samples on their
// way into one.
#include "pipeline/source/blob/blob_index.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "pipeline/source/blob/index_writer.h"
#include "pipeline/source/blob/sample_collector.h"
#include "tests/support/sealed_again.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

class ForgedIndex : public ::testing::Test {
 protected:
  ForgedIndex() {
    BlobIndexWriter writer(path_);
    const std::vector<BlobEntry> entries = {{.place = 512 << 8, .length = 9, .first = 0},
                                            {.place = 999 << 8, .length = 9, .first = 2}};
    const std::vector<uint8_t> targets = {1, 2, 3, 4, 5, 6};
    const std::vector<uint64_t> ends = {3, 5};
    const IndexedPieces objects{"12345", ends};
    writer.add(0, 0, entries, {"a\0b\0", 4}, std::as_bytes(std::span(targets)), objects);
    writer.add(1, 0, entries, {"c\0d\0", 4}, std::as_bytes(std::span(targets)), objects);
    writer.finish({.key = "key",
                   .blobs = {"1.tar", "2.tar"},
                   .stamps = {{4096, 1}, {4096, 2}},
                   .segments = {},
                   .class_names = {"cat"},
                   .notes = {},
                   .targets = {{"x", TargetType::uint8, {2}}, {"y", TargetType::uint8}},
                   .annotations = {.objects = true}},
                  {});
    std::ifstream file(path_, std::ios::binary);
    honest_.assign(std::istreambuf_iterator<char>(file), {});
    table_ = BlobIndex::open(path_)->table();
  }

  // Whether an index is accepted whose table `forge` has changed. The seal of the table is right.
  bool accepts(const std::function<void(BlobTable&)>& forge) const {
    BlobTable table = table_;
    forge(table);
    return accepts(to_bytes(table));
  }
  bool accepts(const std::vector<char>& bytes) const {
    SealedHeader header;
    std::memcpy(&header, honest_.data(), sizeof header);
    const std::string forged =
        honest_.substr(0, header.table_at) + std::string(bytes.begin(), bytes.end());
    return BlobIndex::open(folder_.write("forged", sealed_again(forged))) != nullptr;
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
  const std::span<const char> targets = index->find(3).targets;
  EXPECT_EQ(std::string(targets.begin(), targets.end()), "\4\5\6");
  EXPECT_EQ(index->find(2).objects, "123");
  EXPECT_EQ(index->find(3).objects, "45");
}

// Two columns that vary, of two samples each.
TEST(VaryingIndex, PiecesLieInTheirSegment) {
  const TempFolder folder;
  const std::string path = folder.path() + "/index";
  const std::vector<BlobEntry> entries(2, {.place = 512 << 8, .length = 9});
  const auto written = [&](std::vector<uint64_t> ends) {
    BlobIndexWriter writer(path);
    writer.add(0, 0, entries, {}, {}, {}, {"12345", ends});
    writer.finish(
        {.key = "key",
         .blobs = {"1.tar"},
         .stamps = {{4096, 1}},
         .segments = {},
         .class_names = {"cat"},
         .notes = {},
         .targets = {{"x", TargetType::text, {}, true}, {"y", TargetType::uint8, {}, true}}},
        {});
    return BlobIndex::open(path);
  };
  const auto index = written({1, 3 | kVaryingProblem, 3, 5});
  ASSERT_NE(index, nullptr);
  const auto piece = [](const BlobIndex& from, SampleId id, int64_t column) {
    const auto [bytes, is_problem] = from.varying(from.find(id), column);
    return (is_problem ? "! " : "") + std::string(bytes);
  };
  EXPECT_EQ(piece(*index, 0, 0), "1");
  EXPECT_EQ(piece(*index, 0, 1), "! 23");
  EXPECT_EQ(piece(*index, 1, 0), "");
  EXPECT_EQ(piece(*index, 1, 1), "45");
  // Ends that are no ends of these bytes.
  const auto forged = [&](uint64_t one, uint64_t two) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const auto at = static_cast<size_t>(index->table().segments[0].at) + 2 * sizeof(BlobEntry);
    const uint32_t ends[] = {static_cast<uint32_t>(one), static_cast<uint32_t>(two)};
    std::memcpy(&bytes[at], ends, sizeof ends);
    BlobTable table = index->table();
    const size_t segment_bytes = 2 * sizeof(BlobEntry) + 4 * 4 + 5;
    table.segments[0].seal = XXH3_64bits(bytes.data() + table.segments[0].at, segment_bytes);
    SealedHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    const std::vector<char> packed = to_bytes(table);
    bytes = bytes.substr(0, header.table_at) + std::string(packed.begin(), packed.end());
    return BlobIndex::open(folder.write("forged", sealed_again(bytes)));
  };
  EXPECT_EQ(piece(*forged(1, 3), 0, 1), "23");
  EXPECT_EQ(piece(*forged(4, 3), 0, 1), "");
  EXPECT_EQ(piece(*forged(1, 6), 0, 1), "");
  EXPECT_EQ(piece(*forged(1, 0x7fffffff), 1, 0), "");
}

TEST_F(ForgedIndex, ObjectsLieInTheirSegment) {
  const auto refused = [&](int64_t bytes) {
    return !accepts([&](BlobTable& table) { table.segments[1].object_bytes = bytes; });
  };
  EXPECT_FALSE(refused(8 + 5));
  // Their ends alone have 8 bytes.
  for (const int64_t bytes : {int64_t{-1}, int64_t{0}, int64_t{7}, int64_t{1} << 62}) {
    EXPECT_TRUE(refused(bytes)) << bytes;
  }
  // Shorter ones are accepted, and give no bytes of others. (The seal would find them.)
  BlobTable table = table_;
  table.segments[1].object_bytes = 8 + 2;
  ASSERT_TRUE(accepts(to_bytes(table)));
  const auto index = BlobIndex::open(folder_.path() + "/forged");
  EXPECT_EQ(index->find(3).segment, nullptr);
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

TEST_F(ForgedIndex, TargetsLieInTheFile) {
  const auto refused = [&](const std::function<void(std::vector<TargetColumn>&)>& forge) {
    return !accepts([&](BlobTable& table) { forge(table.targets); });
  };
  EXPECT_FALSE(refused([](auto& columns) { columns.pop_back(); }));
  EXPECT_TRUE(refused([](auto& columns) { columns[1].name = "x"; }));
  EXPECT_TRUE(refused([](auto& columns) { columns[1].name = ""; }));
  EXPECT_TRUE(refused([](auto& columns) { columns[0].shape = {0}; }));
  EXPECT_TRUE(refused([](auto& columns) { columns[0].shape = {-1}; }));
  EXPECT_TRUE(refused([](auto& columns) { columns[0].shape = {1 << 20, 1 << 20}; }));
  // The table is in the file, too, and the last segment could lie in it.
  EXPECT_TRUE(refused([](auto& columns) { columns[0].shape = {1 << 20}; }));
  EXPECT_TRUE(refused([](auto& columns) { columns[0].type = static_cast<TargetType>(7); }));
  EXPECT_TRUE(refused([](auto& columns) { columns[0].type = TargetType::text; }));
  EXPECT_TRUE(refused([](auto& columns) { columns[0].varies = true; }));  // it has a shape
  EXPECT_TRUE(refused([](auto& columns) {  // where its pieces end is not there
    columns[1].type = TargetType::text;
    columns[1].varies = true;
  }));
  EXPECT_TRUE(refused([](auto& columns) {
    for (int i = 0; i < 300; ++i) {
      columns.push_back({std::to_string(i), TargetType::int64, {1 << 25}});
    }
  }));
}

TEST_F(ForgedIndex, EveryExtentBelongsToOneTarget) {
  std::vector<char> bytes = to_bytes(table_);
  // At the end are the ranks of both targets, one extent, three lists of what objects are and four
  // digests, each behind its count.
  const size_t rank_at = bytes.size() - (8 + 4 * 8) - (8 + 8 + 8 + 6 * 8) - (8 + 8) - 2 * 8;
  ASSERT_EQ(bytes[rank_at], 1);
  EXPECT_TRUE(accepts(bytes));
  for (const char rank : {'\0', '\2', '\xff'}) {
    bytes[rank_at] = rank;
    EXPECT_FALSE(accepts(bytes)) << int{rank};
  }
}

TEST(BlobIndexWriter, SegmentsOfWideTargetsAreShort) {
  const TempFolder folder;
  const std::string path = folder.path() + "/index";
  constexpr int64_t kBytes = BlobSegment::kMaxValues / 2 - 1, kSamples = 5;
  BlobIndexWriter writer(path);
  const std::vector<BlobEntry> entries(kSamples, BlobEntry{.length = 1});
  const std::vector<std::byte> values(kSamples * kBytes, std::byte{7});
  writer.add(0, 0, entries, "", values);
  writer.finish({.key = "key",
                 .blobs = {"1.tar"},
                 .stamps = {{4096, 1}},
                 .segments = {},
                 .class_names = {},
                 .notes = {},
                 .targets = {{"x", TargetType::uint8, {kBytes}}}},
                {});
  std::vector<int64_t> samples;
  const auto index = BlobIndex::open(path);
  for (const BlobSegment& segment : index->table().segments) samples.push_back(segment.samples);
  EXPECT_EQ(samples, (std::vector<int64_t>{2, 2, 1}));
}

TEST(BlobIndexWriter, SegmentsOfManyObjectsAreShort) {
  const TempFolder folder;
  const std::string path = folder.path() + "/index";
  constexpr uint64_t kMost = BlobSegment::kMaxValues;
  const std::vector<uint64_t> ends = {kMost / 2,     kMost,         kMost + 1,
                                      3 * kMost + 1, 3 * kMost + 2, 3 * kMost + 2};
  std::string objects(ends.back(), '.');
  for (const uint64_t end : ends) objects[end - 1] = '|';
  BlobIndexWriter writer(path);
  const std::vector<BlobEntry> entries(ends.size(), BlobEntry{.length = 1});
  writer.add(0, 0, entries, "", {}, {objects, ends});
  writer.finish({.key = "key",
                 .blobs = {"1.tar"},
                 .stamps = {{4096, 1}},
                 .segments = {},
                 .class_names = {},
                 .notes = {},
                 .targets = {},
                 .annotations = {.objects = true}},
                {});
  std::vector<int64_t> samples;
  const auto index = BlobIndex::open(path);
  for (const BlobSegment& segment : index->table().segments) samples.push_back(segment.samples);
  EXPECT_EQ(samples, (std::vector<int64_t>{2, 1, 1, 2}));
  for (size_t i = 0; i < ends.size(); ++i) {
    const uint64_t begin = i == 0 ? 0 : ends[i - 1];
    EXPECT_EQ(index->find(static_cast<SampleId>(i)).objects,
              std::string_view(objects).substr(begin, ends[i] - begin))
        << i;
  }
}

TEST_F(ForgedIndex, EveryBlobHasAStampAndThereAreSamples) {
  EXPECT_FALSE(accepts([](BlobTable& table) { table.stamps.pop_back(); }));
  EXPECT_FALSE(accepts([](BlobTable& table) { table.segments.clear(); }));
}

// The result of a collector, without the entries.
struct HandedOn {
  int64_t first_row, samples;
  std::vector<std::string> texts;
  int32_t last_label;
};

TEST(SampleCollector, APieceHasTheObjectsOfItsOwnSamples) {
  const BlobReader blob("blob", std::span<const uint8_t>());
  std::vector<std::vector<uint64_t>> ends;
  std::vector<size_t> bytes;
  SampleCollector collector(blob, [&](SamplePiece& piece) {
    EXPECT_EQ(piece.object_ends.size(), piece.entries.size());
    ends.push_back(piece.object_ends);
    bytes.push_back(piece.objects.size());
  });
  FoundObjects objects;
  objects.problem = std::string(SampleCollector::kPieceValues / 2, 'x');
  FoundSample sample{.length = 1, .name = {}, .label = {}, .objects = &objects};
  for (int i = 0; i < 3; ++i) collector.add(sample);
  collector.finish();
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(ends[0].size(), 2U);
  EXPECT_EQ(ends[0].back(), bytes[0]);
  EXPECT_EQ(ends[1], std::vector<uint64_t>{bytes[1]});
  EXPECT_EQ(bytes[0], 2 * bytes[1]);
}

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

TEST(SampleCollector, APieceOfWideTargetsHasFewSamples) {
  const BlobReader blob("blob", std::span<const uint8_t>());
  constexpr size_t kNumbers = SampleCollector::kPieceValues / 3 / sizeof(int64_t) + 1;
  std::vector<std::pair<int64_t, size_t>> pieces;
  SampleCollector collector(
      blob, [&](SamplePiece& piece) { pieces.emplace_back(piece.first_row, piece.values.size()); },
      {{{"x", "x", {}}}, [](std::vector<TargetColumn> columns) { return columns; }});
  FoundTarget target;
  target.integers.resize(kNumbers);
  target.make_list();
  FoundSample sample;
  sample.targets = {&target, 1};
  for (int i = 0; i < 7; ++i) collector.add(sample);
  collector.finish();
  const size_t bytes = kNumbers * sizeof(int64_t);
  EXPECT_EQ(pieces,
            (std::vector<std::pair<int64_t, size_t>>{{0, 3 * bytes}, {3, 3 * bytes}, {6, bytes}}));
}

TEST(SampleCollector, AColumnThatCannotBeIsAnErrorOfItsBlob) {
  const BlobReader blob("blob", std::span<const uint8_t>());
  SampleCollector collector(
      blob, [](SamplePiece&) {},
      {{{"x", "x", {}}}, [](std::vector<TargetColumn> columns) { return columns; }});
  FoundTarget target;
  target.shape = {3, 0};
  target.offset = 7;
  FoundSample sample;
  sample.targets = {&target, 1};
  EXPECT_EQ(thrown_by<BlobError>([&] { collector.add(sample); }),
            "blob: at byte 7: target 'x' has the shape (3, 0): every extent must be 1 or "
            "more, and a sample may have 256 MiB");
}

}  // namespace
}  // namespace stoker
