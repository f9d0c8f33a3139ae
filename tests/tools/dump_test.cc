// stoker dump must itself be right, because others check the pipeline with it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "decode/image_decoder.h"
#include "tests/tools/cli_harness.h"
#include "tests/tools/npy_reader.h"
#include "tools/data/dump_rows.h"

namespace stoker {
namespace {

using nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Dump : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = std::make_unique<TempFolder>();
    make_small_shapes(data_->path());
  }
  static void TearDownTestSuite() { data_.reset(); }

  std::vector<ordered_json> dump(const std::string& name, std::vector<std::string> options) {
    options.insert(options.begin(), {"dump", "--data", data_->path(), "--out", folder(name)});
    const ProgramResult result = run_stoker(options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::vector<ordered_json> rows;
    std::istringstream lines(read_text(folder(name) + "/rows.jsonl"));
    for (std::string line; std::getline(lines, line);) rows.push_back(ordered_json::parse(line));
    return rows;
  }
  std::string folder(const std::string& name) const { return out_.path() + "/" + name; }
  NpyFile array(const std::string& name, const std::string& file) const {
    return read_npy(folder(name) + "/" + file);
  }
  // Returns the pixels that a row should have, decoded without the pipeline.
  static std::string expected_pixels(const ordered_json& row, int size) {
    const std::string file = read_text(data_->path() + "/" + row["name"].get<std::string>());
    std::string pixels(static_cast<size_t>(size) * size * 3, '\0');
    const auto& crop = row["crop"];
    const CropSpec spec{
        {crop[0], crop[1], crop[2], crop[3]}, {size, size}, {0, 0, size, size}, row["flip"]};
    ImageDecoder decoder;
    const auto* bytes = reinterpret_cast<const uint8_t*>(file.data());
    const DecodeStatus status =
        decoder.decode({bytes, file.size()}, spec,
                       {reinterpret_cast<uint8_t*>(pixels.data()), size, size, 3 * size});
    EXPECT_TRUE(status.ok()) << status.message;
    return pixels;
  }

  static inline std::unique_ptr<TempFolder> data_;
  TempFolder out_;
};

TEST_F(Dump, WritesArraysAndARowForEachOfTheirRows) {
  const auto rows = dump("d", {"--size", "24", "--batch", "16", "--epoch", "1", "--seed", "3"});
  ASSERT_EQ(rows.size(), 48u);  // 40 samples in 3 batches of 16
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string> keys;
    for (const auto& item : rows[i].items()) keys.push_back(item.key());
    EXPECT_THAT(keys, ElementsAre("step", "row", "sample_id", "name", "label", "weight",
                                  "source_width", "source_height", "crop", "flip", "draws"));
    EXPECT_EQ(rows[i]["step"], i / 16);
    EXPECT_EQ(rows[i]["row"], i % 16);
    EXPECT_EQ(rows[i]["source_width"], 48);
  }
  for (int step = 0; step < 3; ++step) {
    const std::string number = "_0000" + std::to_string(step) + ".npy";
    EXPECT_THAT(array("d", "images" + number).shape, ElementsAre(16, 24, 24, 3));
    EXPECT_EQ(array("d", "images" + number).descr, "|u1");
    const auto labels = array("d", "labels" + number).values<int32_t>();
    const auto weights = array("d", "weights" + number).values<float>();
    ASSERT_EQ(labels.size(), 16u);
    ASSERT_EQ(weights.size(), 16u);
    for (int row = 0; row < 16; ++row) {
      EXPECT_EQ(labels[row], rows[step * 16 + row]["label"]);
      EXPECT_EQ(weights[row], rows[step * 16 + row]["weight"]);
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder("d") + "/images_00003.npy"));
}

TEST_F(Dump, MixedRowsSayWhatTheyAreMadeOf) {
  const std::vector<std::string> feed = {"--size", "24", "--batch", "16", "--epoch", "1"};
  std::vector<std::string> mixing = feed;
  mixing.insert(mixing.end(),
                {"--augment", "random_resized_crop | flip | mix(mixup=0.5, cutmix=1)"});
  const auto plain = dump("plain", feed), mixed = dump("mixed", mixing);
  ASSERT_EQ(mixed.size(), plain.size());
  const auto own = array("plain", "images_00000.npy").values<uint8_t>();
  const auto made = array("mixed", "images_00000.npy").values<uint8_t>();
  const auto labels = array("mixed", "target_mix_label_00000.npy").values<int32_t>();
  const auto shares = array("mixed", "target_mix_weight_00000.npy").values<float>();
  constexpr size_t kRow = size_t{24} * 24 * 3;
  int boxes = 0;
  for (size_t row = 0; row < 16; ++row) {
    ASSERT_TRUE(mixed[row].contains("mix")) << row;
    EXPECT_FALSE(plain[row].contains("mix"));
    const ordered_json& mix = mixed[row]["mix"];
    const size_t partner = row ^ 1;
    EXPECT_EQ(mix["partner"], plain[partner]["sample_id"]);
    EXPECT_EQ(labels[row], plain[partner]["label"]);
    EXPECT_EQ(mix["own_share"], shares[row]);
    const bool cut = mix.contains("box");
    boxes += cut;
    for (size_t i = 0; i < kRow; ++i) {
      const double a = own[row * kRow + i], b = own[partner * kRow + i];
      const int x = static_cast<int>(i / 3 % 24), y = static_cast<int>(i / 3 / 24);
      const auto in = [&](int at, int side, int begin) {
        return at >= mix["box"][begin] && at - mix["box"][begin].get<int>() < mix["box"][side];
      };
      const double expected =
          cut ? (in(x, 2, 0) && in(y, 3, 1) ? b : a) : shares[row] * a + (1 - shares[row]) * b;
      ASSERT_NEAR(made[row * kRow + i], expected, cut ? 0 : 0.5001) << row;
    }
  }
  EXPECT_TRUE(boxes > 0 && boxes < 16);
  const ProgramResult refused =
      run_stoker({"dump", "--data", data_->path(), "--out", folder("e"), "--batch", "7",
                  "--augment", "random_resized_crop | mix(mixup=0.5)"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("--batch is 7 for each device, must be even where rows are mixed in "
                        "pairs (mix)"));
}

TEST_F(Dump, TargetsAreArraysToo) {
  std::string list = "path,label,box/a,age\n";
  int sample = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(data_->path() + "/train")) {
    if (!entry.is_regular_file()) continue;
    list += entry.path().string() + ",0," + std::to_string(sample) + " 0.5," +
            std::to_string(100 - sample) + "\n";
    ++sample;
  }
  ASSERT_EQ(sample, 40);
  std::ofstream(out_.path() + "/list.csv") << list;
  const ProgramResult result = run_stoker(
      {"dump", "--data", out_.path() + "/list.csv", "--out", folder("d"), "--size", "24", "--batch",
       "16", "--steps", "1", "--target-from", "box/a:float32", "--target-from", "age"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(
      result.err,
      HasSubstr("--target-from: the target 'box/a': float32 (2) seems to say where something "
                "is in the picture, and random_resized_crop"));
  const NpyFile boxes = array("d", "target_box_a_00000.npy");
  EXPECT_EQ(boxes.descr, "<f4");
  EXPECT_THAT(boxes.shape, ElementsAre(16, 2));
  const NpyFile ages = array("d", "target_age_00000.npy");
  EXPECT_EQ(ages.descr, "<i8");
  EXPECT_THAT(ages.shape, ElementsAre(16));
  std::istringstream lines(read_text(folder("d") + "/rows.jsonl"));
  size_t row = 0;
  for (std::string line; std::getline(lines, line); ++row) {
    const int id = ordered_json::parse(line)["sample_id"];
    EXPECT_EQ(boxes.values<float>()[2 * row], id);
    EXPECT_EQ(boxes.values<float>()[2 * row + 1], 0.5F);
    EXPECT_EQ(ages.values<int64_t>()[row], 100 - id);
  }
  EXPECT_EQ(row, 16u);
  const ProgramResult refused =
      run_stoker({"dump", "--data", data_->path(), "--out", folder("e"), "--target-from", "age"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--target-from is "));
}

TEST_F(Dump, PixelsAreThoseOfTheNamedFileCropAndFlip) {
  const auto rows = dump("d", {"--size", "20", "--batch", "40", "--epoch", "2", "--seed", "7"});
  const std::string images = array("d", "images_00000.npy").data;
  const size_t bytes = 20 * 20 * 3;
  int flips = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(images.substr(i * bytes, bytes), expected_pixels(rows[i], 20)) << rows[i];
    flips += rows[i]["flip"].get<bool>();
  }
  EXPECT_GT(flips, 5);
  EXPECT_LT(flips, 35);
}

TEST_F(Dump, DrawsSayAllThatWasDone) {
  const std::string stages = "random_resized_crop(24) | flip | color_jitter(0.4, 0.3) | cutout(6)";
  const auto rows = dump("d", {"--batch", "40", "--augment", stages, "--epoch", "2"});
  std::set<std::string> last;
  for (const auto& row : rows) {
    const std::string draws = row["draws"];
    const auto& crop = row["crop"];
    EXPECT_THAT(draws, StartsWith("crop(x=" + crop[0].dump() + ", y=" + crop[1].dump() +
                                  ", width=" + crop[2].dump() + ", height=" + crop[3].dump() +
                                  ") | resize(width=24, height=24, filter='bilinear') | "));
    EXPECT_EQ(draws.find(" | flip | ") != std::string::npos, row["flip"].get<bool>()) << draws;
    EXPECT_THAT(draws, HasSubstr("brightness(factor="));
    EXPECT_THAT(draws, HasSubstr("contrast(factor="));
    last.insert(draws.substr(draws.rfind(" | ")));
  }
  EXPECT_GT(last.size(), 35u) << "every row has a square of its own";
}

TEST_F(Dump, ExplainsAnAugmentationAndWritesNothing) {
  const ProgramResult result =
      run_stoker({"dump", "--data", data_->path(), "--out", folder("d"), "--size", "24",
                  "--explain-augment", "--augment", "random_resized_crop | flip | equalize"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            "samples of 24 x 24 pixels (height, width)\n"
            "random_resized_crop: done by the decoder while it decodes\n"
            "flip: done by the decoder while it decodes, or nothing\n"
            "equalize: a pass of its own\n");
  EXPECT_FALSE(std::filesystem::exists(folder("d")));
}

TEST_F(Dump, EverySampleCountsOnceOverAllRanks) {
  std::map<int, double> weight_of;
  for (const char* rank : {"0", "1", "2"}) {
    for (const auto& row : dump(rank, {"--batch", "4", "--world", "3", "--rank", rank})) {
      weight_of[row["sample_id"]] += row["weight"].get<double>();
    }
  }
  EXPECT_EQ(weight_of.size(), 40u);
  for (const auto& [id, weight] : weight_of) EXPECT_EQ(weight, 1.0) << id;
}

TEST_F(Dump, IsTheSameForAnyNumberOfWorkers) {
  const std::vector<std::string> options = {"--size", "24", "--batch", "16", "--workers"};
  for (const char* workers : {"0", "1", "4"}) {
    auto all = options;
    all.emplace_back(workers);
    dump(workers, all);
  }
  for (const std::string file : {"rows.jsonl", "images_00000.npy", "images_00002.npy"}) {
    const std::string first = read_text(folder("0") + "/" + file);
    EXPECT_FALSE(first.empty());
    EXPECT_EQ(first, read_text(folder("1") + "/" + file)) << file;
    EXPECT_EQ(first, read_text(folder("4") + "/" + file)) << file;
  }
}

TEST_F(Dump, AnotherEpochAndSeedDrawAnew) {
  const auto crops = [](const std::vector<ordered_json>& rows) {
    std::map<int, std::string> result;
    for (const auto& row : rows) result[row["sample_id"]] = row["crop"].dump();
    return result;
  };
  const auto first = crops(dump("a", {"--batch", "40"}));
  EXPECT_EQ(first, crops(dump("b", {"--batch", "10"})));
  EXPECT_NE(first, crops(dump("c", {"--batch", "40", "--epoch", "1"})));
  EXPECT_NE(first, crops(dump("d", {"--batch", "40", "--seed", "1"})));
}

TEST_F(Dump, StepsMayRunOverTheEpochsEnd) {
  EXPECT_EQ(dump("d", {"--batch", "20", "--steps", "5"}).size(), 100u);
  EXPECT_TRUE(std::filesystem::exists(folder("d") + "/images_00004.npy"));
}

TEST_F(Dump, ABadFileIsARowOfWeightZero) {
  TempFolder data;
  make_small_shapes(data.path());
  data.write("train/disc/disc_000001.jpg", "not a picture");
  const ProgramResult result = run_stoker(
      {"dump", "--data", data.path(), "--out", folder("d"), "--batch", "40", "--max-bad", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::istringstream lines(read_text(folder("d") + "/rows.jsonl"));
  int zeros = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto row = ordered_json::parse(line);
    if (row["weight"] != 0) continue;
    ++zeros;
    EXPECT_EQ(row["name"], "train/disc/disc_000001.jpg");
  }
  EXPECT_EQ(zeros, 1);
  const ProgramResult over = run_stoker(
      {"dump", "--data", data.path(), "--out", folder("e"), "--batch", "40", "--max-bad", "0"});
  EXPECT_EQ(over.exit_code, 3);
  EXPECT_THAT(over.err, HasSubstr("disc_000001.jpg"));
}

TEST_F(Dump, RefusesWhatMakesNoSense) {
  const std::vector<std::pair<std::string, std::string>> options = {
      {"--batch", "0"},    {"--size", "0"},       {"--rank", "1"},
      {"--world", "0"},    {"--epoch", "-1"},     {"--augment", "squint"},
      {"--workers", "-2"}, {"--last-batch", "x"}, {"--augment", "resize(3"}};
  for (const auto& [option, value] : options) {
    const ProgramResult result =
        run_stoker({"dump", "--data", data_->path(), "--out", folder("d"), option, value});
    EXPECT_EQ(result.exit_code, 2) << option << result.err;
    EXPECT_EQ(count_lines(result.err), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(value)) << option;
    EXPECT_FALSE(std::filesystem::exists(folder("d"))) << option;
  }
}

TEST_F(Dump, AFullDiskIsOneLineWithThePath) {
  out_.link("/dev/full", "d/labels_00000.npy");
  const ProgramResult result =
      run_stoker({"dump", "--data", data_->path(), "--out", folder("d"), "--batch", "8"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(count_lines(result.err), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("d/labels_00000.npy: No space left on device"));
}

// Somebody else may lay a link where a file will be, in a folder that several users share.
TEST_F(Dump, FollowsNoLinkAndLeavesNothingHalf) {
  const std::string victim = out_.write("victim", "mine");
  for (const char* name :
       {"d/rows.jsonl", "d/rows.jsonl.tmp", "d/labels_00000.npy", "d/labels_00000.npy.tmp"}) {
    out_.link(victim, name);
  }
  const ProgramResult result = run_stoker(
      {"dump", "--data", data_->path(), "--out", folder("d"), "--batch", "8", "--steps", "1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(read_text(victim), "mine");
  EXPECT_EQ(count_lines(read_text(folder("d") + "/rows.jsonl")), 8);
  EXPECT_FALSE(std::filesystem::is_symlink(folder("d") + "/rows.jsonl"));
  for (const auto& entry : std::filesystem::directory_iterator(folder("d"))) {
    EXPECT_NE(entry.path().extension(), ".tmp");
  }
}

TEST_F(Dump, MayWriteToStandardOutput) {
  const ProgramResult result = run_program(
      {"sh", "-c",
       "'" STOKER_PROGRAM "' peek --count 1 -o /dev/stdout --data '" + data_->path() + "' | cat"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, ::testing::HasSubstr("PNG"));
}

}  // namespace
}  // namespace stoker
