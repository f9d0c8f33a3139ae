// Sources of shards and lists whose samples have targets: their types and shapes, their index, and
// what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipeline/source/blob/blob_index.h"
#include "pipeline/source/blob/blob_source.h"
#include "pipeline/source/blob/target_values.h"
#include "pipeline/source/target_source.h"
#include "tests/support/source_contents.h"
#include "tests/support/tar_maker.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tfrecord_maker.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Fields = std::vector<std::string>;

std::string record_of(const std::string& image, const std::vector<int64_t>& tags) {
  return make_record(make_example({{"image", bytes_feature({image})},
                                   {"label", int64_feature({1})},
                                   {"tags", int64_feature(tags)}}));
}

std::string json_shard(const std::vector<std::string>& jsons) {
  std::string tar;
  for (size_t i = 0; i < jsons.size(); ++i) {
    const std::string key = std::to_string(i);
    tar += tar_member(key + ".jpg", "image " + key) + tar_member(key + ".json", jsons[i]);
  }
  return tar + tar_end();
}

SourceOptions target_options(Fields targets, const std::string& label = "none") {
  SourceOptions options;
  options.label_from = label;
  options.targets_from = std::move(targets);
  options.cache_dir = "";
  return options;
}

std::string target_error(const std::string& path, const SourceOptions& options) {
  return thrown_by<std::exception>([&] { open_source(path, options); });
}

// The bytes of each column of a sample's targets.
std::vector<std::string> column_bytes(const Source& source, SampleId id) {
  std::vector<std::string> bytes;
  SampleTargets targets;
  for (const TargetColumn& column : source.targets()) {
    bytes.emplace_back(static_cast<size_t>(column.bytes()), '?');
  }
  for (std::string& column : bytes) {
    targets.columns.push_back(reinterpret_cast<std::byte*>(column.data()));
  }
  source.read_targets(id, {}, targets);
  EXPECT_EQ(targets.label, source.label(id));
  return bytes;
}

template <class T>
std::vector<T> column_values(const Source& source, SampleId id, size_t column = 0) {
  const std::string bytes = column_bytes(source, id)[column];
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<std::string> columns_of(const Source& source) {
  std::vector<std::string> columns;
  for (const TargetColumn& column : source.targets()) columns.push_back(column.describe());
  return columns;
}

TEST(BlobTargets, ColumnsHaveTheOrderAndTheTypesThatWereAskedFor) {
  const TempFolder folder;
  const std::string list = folder.write(
      "l.csv", "path,label,tags,box,age\na.jpg,cat,1 0,0.5 1 2 3,7\nb.jpg,dog,0 1,1 1 1 1,8\n");
  const auto source =
      open_source(list, target_options({"age:int32", "box", "tags:uint8"}, "label"));
  EXPECT_THAT(columns_of(*source),
              ElementsAre("'age': int32 ()", "'box': float32 (4)", "'tags': uint8 (2)"));
  EXPECT_THAT(column_values<int32_t>(*source, 1, 0), ElementsAre(8));
  EXPECT_THAT(column_values<float>(*source, 0, 1), ElementsAre(0.5F, 1, 2, 3));
  EXPECT_THAT(column_values<uint8_t>(*source, 1, 2), ElementsAre(0, 1));
  EXPECT_THAT(labels_of(*source), ElementsAre(0, 1));
}

TEST(BlobTargets, AFieldMayEndLikeAType) {
  const TempFolder folder;
  const std::string list = folder.write("l.csv", "path,x:int64\na.jpg,1\n");
  EXPECT_THAT(columns_of(*open_source(list, target_options({"x:int64:uint8"}))),
              ElementsAre("'x:int64': uint8 ()"));
}

TEST(BlobTargets, WithoutTargetsThereAreNoColumns) {
  const TempFolder folder;
  const auto source = open_source(folder.write("l.csv", "path,x\na.jpg,1\n"), target_options({}));
  EXPECT_THAT(source->targets(), IsEmpty());
  EXPECT_EQ(source->targets_digest(), 0U);
  EXPECT_THAT(column_bytes(*source, 0), IsEmpty());
}

TEST(BlobTargets, TheFirstSampleOfAllShardsDecides) {
  const TempFolder folder;
  // The first sample is late in its shard, so that those of other shards come before it.
  std::string late;
  for (int i = 0; i < 3'000; ++i) late += tar_member("n" + std::to_string(i) + ".txt", "no image");
  folder.write("a.tar", late + json_shard({R"({"x": 0.5})", R"({"x": 1})"}));
  for (const char* name : {"b.tar", "c.tar", "d.tar"}) {
    folder.write(name, json_shard({R"({"x": 2})", R"({"x": 1e30})"}));
  }
  const auto source = open_source(folder.path(), target_options({"json:x"}));
  EXPECT_THAT(columns_of(*source), ElementsAre("'x': float32 ()"));
  EXPECT_THAT(column_values<float>(*source, 1), ElementsAre(1));
  EXPECT_THAT(column_values<float>(*source, 2), ElementsAre(2));
  EXPECT_THAT(column_values<float>(*source, 7), ElementsAre(1e30F));
  // The first shard with a sample in it decides.
  folder.write("a.tar", tar_end());
  folder.write("b.tar", json_shard({R"({"x": 2})", R"({"x": 3.0})"}));
  folder.write("c.tar", json_shard({R"({"x": 4})"}));
  folder.write("d.tar", json_shard({R"({"x": 4.5})"}));
  EXPECT_EQ(target_error(folder.path(), target_options({"json:x"})),
            folder.path() +
                "/d.tar: at byte 1536: sample 0, '0.jpg': target 'x' has the value 4.5, which is "
                "no int64");
  fs::remove(folder.path() + "/d.tar");
  const auto integers = open_source(folder.path(), target_options({"json:x"}));
  EXPECT_THAT(columns_of(*integers), ElementsAre("'x': int64 ()"));
  EXPECT_THAT(column_values<int64_t>(*integers, 1), ElementsAre(3));
}

TEST(BlobTargets, SamplesOfOtherShapesAreRefused) {
  const TempFolder folder;
  const std::string list = folder.write("l.csv", "path,x\n\"a\n.jpg\",1 2 3\nb.jpg,1 2 3 4\n");
  EXPECT_EQ(target_error(list, target_options({"x"})),
            list +
                ": at byte 22: line 4, 'b.jpg': target 'x' has the shape (4), and the first "
                "sample has (3)");
  folder.write("a.tfrecord", record_of("one", {1, 2}));
  const std::string last = record_of("two", {1, 2});
  folder.write("b.tfrecord", last + record_of("three", {3}));
  EXPECT_EQ(target_error(folder.path() + "/*.tfrecord", target_options({"tags"})),
            folder.path() + "/b.tfrecord: at byte " + std::to_string(last.size()) +
                ": sample 1: target 'tags' has the shape (), and the first sample has (2)");
}

std::string converted(TargetType type, const FoundTarget& found) {
  std::vector<std::byte> out;
  const std::string problem = append_target({"x", type, found.shape}, found, out);
  return problem.empty() ? "fits" : problem;
}

FoundTarget integer(int64_t value) { return {.integers = {value}}; }
FoundTarget real(double value) { return {.reals = {value}}; }

TEST(BlobTargets, OnlyWhatATypeCanHoldFits) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(converted(TargetType::uint8, integer(255)), "fits");
  EXPECT_EQ(converted(TargetType::uint8, integer(256)), "has the value 256, which is no uint8");
  EXPECT_EQ(converted(TargetType::uint8, integer(-1)), "has the value -1, which is no uint8");
  EXPECT_EQ(converted(TargetType::int32, integer(INT32_MIN)), "fits");
  EXPECT_EQ(converted(TargetType::int32, integer(int64_t{INT32_MAX} + 1)),
            "has the value 2147483648, which is no int32");
  EXPECT_EQ(converted(TargetType::int64, integer(INT64_MIN)), "fits");
  EXPECT_EQ(converted(TargetType::int64, real(-3)), "fits");
  EXPECT_EQ(converted(TargetType::int64, real(0.5)), "has the value 0.5, which is no int64");
  EXPECT_EQ(converted(TargetType::int64, real(kNan)), "has the value nan, which is no int64");
  EXPECT_EQ(converted(TargetType::int32, real(-kInfinity)),
            "has the value -inf, which is no int32");
  EXPECT_EQ(converted(TargetType::int64, real(1e300)), "has the value 1e+300, which is no int64");
  EXPECT_EQ(converted(TargetType::uint8, real(256)), "has the value 256, which is no uint8");
  EXPECT_EQ(converted(TargetType::float32, real(kNan)), "fits");
  EXPECT_EQ(converted(TargetType::float32, real(-kInfinity)), "fits");
  EXPECT_EQ(converted(TargetType::float32, real(3.4e38)), "fits");
  EXPECT_EQ(converted(TargetType::float32, real(-3.5e38)),
            "has the value -3.5e+38, which is no float32");
  EXPECT_EQ(converted(TargetType::float32, integer(INT64_MAX)), "fits");
  EXPECT_EQ(converted(TargetType::uint8, {.shape = {3}, .integers = {1, 2, 300}}),
            "has the value 300 at 2, which is no uint8");
}

TEST(BlobTargets, DoublesAreRounded) {
  const TempFolder folder;
  const auto source =
      open_source(folder.write("l.csv", "path,x\na,0.1 16777217\n"), target_options({"x"}));
  EXPECT_THAT(column_values<float>(*source, 0), ElementsAre(0.1F, 16777216.0F));
}

TEST(BlobTargets, ValuesOfLaterSegmentsAndOfWideVectorsAreFound) {
  const TempFolder folder;
  std::string narrow, wide;
  constexpr int64_t kRows = 2 * BlobSegment::kMaxSamples + 3;
  for (int64_t i = 0; i < kRows; ++i) narrow += record_of("x", {i, -i});
  // 400 KB each: a segment holds two of them.
  constexpr int64_t kWide = 50'000, kWideRows = 7;
  for (int64_t i = 0; i < kWideRows; ++i) {
    wide += record_of("x", std::vector<int64_t>(kWide, 1'000 + i));
  }
  const auto source = open_source(folder.write("a.tfrecord", narrow), target_options({"tags"}));
  for (const int64_t row : {int64_t{0}, BlobSegment::kMaxSamples - 1, BlobSegment::kMaxSamples,
                            2 * BlobSegment::kMaxSamples, kRows - 1}) {
    EXPECT_THAT(column_values<int64_t>(*source, row), ElementsAre(row, -row));
  }
  const auto second = open_source(folder.write("b.tfrecord", wide), target_options({"tags"}));
  ASSERT_EQ(second->size(), kWideRows);
  for (int64_t row = 0; row < kWideRows; ++row) {
    const std::vector<int64_t> values = column_values<int64_t>(*second, row);
    EXPECT_EQ(values, std::vector<int64_t>(kWide, 1'000 + row));
    EXPECT_EQ(second->name(row), "b.tfrecord#" + std::to_string(row));
  }
}

TEST(BlobTargets, TheDigestIsThatOfTheSameValuesInMemory) {
  const TempFolder folder;
  const std::string path =
      folder.write("l.csv", "path,x,y\na.jpg,1 2,0.5\nb.jpg,3 4,1.5\nc.jpg,5 6,2.5\n");
  const auto source = open_source(path, target_options({"x", "y"}));
  const auto bare = open_source(path, target_options({}));
  const std::vector<int64_t> x = {1, 2, 3, 4, 5, 6};
  const std::vector<float> y = {0.5, 1.5, 2.5};
  const TargetSource tables(
      *bare, {{.column = {"x", TargetType::int64, {2}}, .values = std::as_bytes(std::span(x))},
              {.column = {"y", TargetType::float32}, .values = std::as_bytes(std::span(y))}});
  EXPECT_EQ(source->targets_digest(), tables.targets_digest());
  EXPECT_NE(source->targets_digest(), 0U);
  EXPECT_EQ(source->labels_digest(), bare->labels_digest());
  // Another value, another name and another type are other targets.
  const auto digest_of = [&](const std::string& text, Fields fields) {
    return open_source(folder.write("m.csv", text), target_options(std::move(fields)))
        ->targets_digest();
  };
  const std::string text = "path,x,y\na.jpg,1 2,0.5\nb.jpg,3 4,1.5\nc.jpg,5 6,2.5\n";
  EXPECT_EQ(digest_of(text, {"x", "y"}), source->targets_digest());
  EXPECT_NE(digest_of("path,x,y\na.jpg,1 2,0.5\nb.jpg,3 4,1.5\nc.jpg,5 6,3.5\n", {"x", "y"}),
            source->targets_digest());
  EXPECT_NE(digest_of("path,z,y\na.jpg,1 2,0.5\nb.jpg,3 4,1.5\nc.jpg,5 6,2.5\n", {"z", "y"}),
            source->targets_digest());
  EXPECT_NE(digest_of(text, {"x:int32", "y"}), source->targets_digest());
}

TEST(BlobTargets, TheFingerprintHasThem) {
  const TempFolder folder;
  const auto fingerprint_of = [&](const std::string& values, Fields fields) {
    const std::string path = folder.write("l.csv", "path,x\na.jpg,1 " + values + "\n");
    return open_source(path, target_options(std::move(fields)))->fingerprint();
  };
  EXPECT_EQ(fingerprint_of("2", {"x"}), fingerprint_of("2", {"x"}));
  EXPECT_NE(fingerprint_of("2", {"x"}), fingerprint_of("3", {"x"}));
  EXPECT_NE(fingerprint_of("2", {"x"}), fingerprint_of("2", {}));
  EXPECT_NE(fingerprint_of("0", {"x:int32"}), fingerprint_of("0", {"x:float32"}));
  EXPECT_EQ(fingerprint_of("2", {}), fingerprint_of("3", {}));
}

TEST(BlobTargets, AnIndexIsKeptForEachChoice) {
  const TempFolder folder;
  std::string text = "path,x,y\n";
  for (int i = 0; i < 10'000; ++i) {
    text += std::to_string(i) + ".jpg," + std::to_string(i) + "," + std::to_string(i % 3) + "\n";
  }
  const std::string path = folder.write("l.csv", text);
  settle(path);
  const std::string cache = folder.make_folder("cache");
  int scans = 0;
  const auto open = [&](Fields fields) {
    SourceOptions options = target_options(std::move(fields));
    options.cache_dir = cache;
    options.go_on = [&scans, asked = false](int64_t, int64_t) mutable {
      scans += asked ? 0 : 1;
      asked = true;
      return true;
    };
    return open_source(path, options);
  };
  const auto files = [&] { return std::distance(fs::directory_iterator(cache), {}); };
  open({"x"});
  EXPECT_EQ(scans, 1);
  const auto again = open({"x"});
  EXPECT_EQ(scans, 1);
  EXPECT_THAT(columns_of(*again), ElementsAre("'x': int64 ()"));
  EXPECT_THAT(column_values<int64_t>(*again, 9'999), ElementsAre(9'999));
  EXPECT_EQ(files(), 1);
  for (const Fields& fields :
       {Fields{"y"}, Fields{"x", "y"}, Fields{"y", "x"}, Fields{"x:int32"}, Fields{}}) {
    open(fields);
    EXPECT_THAT(columns_of(*open(fields)).size(), fields.size());
  }
  EXPECT_EQ(scans, 6);
  EXPECT_EQ(files(), 6);
}

TEST(BlobTargets, ADamagedIndexGivesZeros) {
  const TempFolder folder;
  std::string text = "path,x\n";
  for (int i = 0; i < 10'000; ++i) text += std::to_string(i) + ".jpg,5\n";
  const std::string path = folder.write("l.csv", text);
  settle(path);
  SourceOptions options = target_options({"x"});
  options.cache_dir = folder.make_folder("cache");
  open_source(path, options);
  const std::string index = fs::directory_iterator(options.cache_dir)->path().string();
  damage_byte(index, sizeof(SealedHeader) + 3);
  const auto source = open_source(path, options);
  EXPECT_THAT(column_values<int64_t>(*source, 1), ElementsAre(0));
  EXPECT_THAT(column_values<int64_t>(*source, 9'999), ElementsAre(5));
}

TEST(BlobTargets, AFirstShardThatIsBrokenStopsTheOthers) {
  const TempFolder folder;
  folder.write("a.tar", json_shard({R"({"x": "cat"})"}));
  for (const char* name : {"b.tar", "c.tar", "d.tar", "e.tar"}) {
    folder.write(name, json_shard({R"({"x": 2})"}));
  }
  EXPECT_EQ(target_error(folder.path(), target_options({"json:x"})),
            folder.path() +
                "/a.tar: at byte 1536: target 'x' in '0.json' is or has string, and no "
                "number");
}

TEST(BlobTargets, ChoicesThatCannotBeAreRefused) {
  const TempFolder folder;
  const std::string list = folder.write("l.csv", "path,x\na.jpg,1\n");
  EXPECT_EQ(target_error(list, target_options({""})), "targets_from has '', which names no field");
  EXPECT_EQ(target_error(list, target_options({":int64"})),
            "targets_from has ':int64', which names no field");
  EXPECT_EQ(target_error(list, target_options({std::string("x\0", 2)})),
            "targets_from has 'x\\x00', which has a NUL byte");
  EXPECT_EQ(target_error(list, target_options({"x", "x:int32"})),
            "targets_from has 'x:int32', whose name comes twice");
  const std::string pictures = folder.make_folder("pictures");
  folder.write("pictures/cat/1.jpg", "one");
  SourceOptions options = target_options({"x"}, "");
  EXPECT_THROW(open_source(pictures, options), std::invalid_argument);
  const std::string choice = pictures + " is an image folder, which has no such choice";
  EXPECT_EQ(target_error(pictures, options), "SourceOptions: targets_from is \"x\", and " + choice);
  EXPECT_EQ(target_error(pictures, target_options({}, "cls")),
            "SourceOptions: label_from is \"cls\", and " + choice);
  const std::string cifar = folder.make_folder("cifar");
  folder.write("cifar/data_batch_1.bin", "");
  EXPECT_EQ(target_error(cifar, options), "SourceOptions: targets_from is \"x\", and " + cifar +
                                              " is a folder of CIFAR's files, which has no such "
                                              "choice");
}

TEST(BlobTargets, ALabelIsStillNeeded) {
  const TempFolder folder;
  const std::string list = folder.write("l.csv", "path,x\na.jpg,1\n");
  EXPECT_EQ(target_error(list, target_options({"x"}, "")),
            list +
                ": at byte 0: line 1: none of label, labels, class, class_name, category, target, "
                "y is here; there is 'path', 'x': say where the label is with `label_from`, or "
                "none");
}

}  // namespace
}  // namespace stoker
