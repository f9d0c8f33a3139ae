// (5) Bad samples through the Loader: their rows, the quarantine list, the budget.
#include "pipeline/row/quarantine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "pipeline/files/digest.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

std::vector<Json> read_lines(const std::string& path) {
  std::vector<Json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

LoaderOptions quarantine_options(int workers, const std::string& quarantine = "") {
  return {.batch_size = 8,
          .feed = {.workers = workers, .max_bad = 100},
          .quarantine_file = quarantine,
          .digests = true};
}

class QuarantineTest : public ::testing::Test {
 protected:
  // Five bad samples of 40, each bad in another way.
  QuarantineTest() {
    source_->replace(3, {});
    source_->replace(11, truncated(jpeg_file(40, 40, 3), 200));
    source_->replace(12, text_bytes("<html>404 Not Found</html>\n"));
    source_->replace(25, random_bytes(3000));
    source_->fail(38, "read: Input/output error (5)");
  }
  const std::set<SampleId> bad_ = {3, 11, 12, 25, 38};
  std::unique_ptr<FakeSource> source_ = jpeg_source(40);
  TempFolder folder_;
  const std::string file_ = folder_.path() + "/bad.jsonl";
};

TEST_F(QuarantineTest, BadRowsAreSubstitutesThatDoNotCount) {
  for (const int workers : {0, 2}) {
    std::map<SampleId, uint64_t> pixels;
    std::map<SampleId, DeliveredRow> bad;
    for (const Delivered& batch : Feed(*source_, crop_spec(), quarantine_options(workers)).all()) {
      int valid = 0;
      for (const DeliveredRow& row : batch.rows) {
        EXPECT_EQ(row.bad, bad_.count(row.id) == 1);
        EXPECT_EQ(row.weight, row.bad ? 0 : 1);
        EXPECT_EQ(row.label, source_->label(row.id));
        valid += row.weight > 0;
        if (row.bad) {
          bad[row.id] = row;
        } else {
          EXPECT_EQ(row.pixels_of, row.id);
          pixels[row.id] = row.pixels;
        }
      }
      EXPECT_EQ(batch.valid, valid);
    }
    ASSERT_EQ(bad.size(), bad_.size());
    for (const auto& [id, row] : bad) {
      ASSERT_TRUE(pixels.contains(row.pixels_of)) << "sample " << id;
      EXPECT_EQ(row.pixels, pixels[row.pixels_of]) << "sample " << id;
    }
    EXPECT_EQ(bad[3].code, DecodeCode::empty);
    EXPECT_EQ(bad[11].code, DecodeCode::truncated);
    EXPECT_EQ(bad[12].code, DecodeCode::not_an_image);
    EXPECT_EQ(bad[25].code, DecodeCode::not_an_image);
    EXPECT_EQ(bad[38].code, DecodeCode::ok);  // it could not be read
  }
}

TEST_F(QuarantineTest, BatchesWithBadRowsDoNotDependOnThreads) {
  const std::vector<Delivered> expected = Feed(*source_, crop_spec(), quarantine_options(0)).all();
  for (const int workers : {1, 2, 8}) {
    EXPECT_EQ(Feed(*source_, crop_spec(), quarantine_options(workers)).all(), expected);
  }
}

TEST_F(QuarantineTest, TheListIsExactOncePerEpochInStepOrder) {
  for (const int workers : {0, 2, 8}) {
    std::filesystem::remove(file_);
    LoaderOptions options = quarantine_options(workers, file_);
    options.epochs = 2;
    options.batch_size = 7;  // pads the last batch
    Feed feed(*source_, crop_spec(), options);
    std::vector<std::tuple<int64_t, Step, int, SampleId>> expected;
    for (const Delivered& batch : feed.all()) {
      for (size_t row = 0; row < batch.rows.size(); ++row) {
        const bool padding = batch.step_in_epoch == 5 && row >= 5;
        if (!bad_.count(batch.rows[row].id) || padding) continue;
        expected.emplace_back(batch.epoch, batch.step, row, batch.rows[row].id);
      }
    }
    ASSERT_EQ(expected.size(), 10u);
    std::vector<std::tuple<int64_t, Step, int, SampleId>> listed;
    for (const Json& line : read_lines(file_)) {
      listed.emplace_back(line["epoch"], line["step"], line["row"], line["sample_id"]);
      EXPECT_EQ(line["name"], "fake/" + line["sample_id"].dump());
      EXPECT_FALSE(line["message"].get<std::string>().empty());
    }
    EXPECT_EQ(listed, expected);
    EXPECT_EQ(feed.loader().stats().bad_samples, 10);
  }
}

// The last batch's padding repeats rows of other ranks, which list them already.
TEST_F(QuarantineTest, RanksListEachBadSampleOnce) {
  std::vector<std::pair<int64_t, SampleId>> listed;
  for (int rank = 0; rank < 3; ++rank) {
    LoaderOptions options = quarantine_options(1, file_ + std::to_string(rank));
    options.epochs = 8;
    options.world = 3;
    options.rank = rank;
    Feed(*source_, crop_spec(), options).all();
    for (const Json& line : read_lines(options.quarantine_file)) {
      listed.emplace_back(line["epoch"], line["sample_id"]);
    }
  }
  EXPECT_EQ(std::set(listed.begin(), listed.end()).size(), 8 * bad_.size());
  EXPECT_EQ(listed.size(), 8 * bad_.size());
}

TEST_F(QuarantineTest, TheListSaysWhatAndWhere) {
  Feed feed(*source_, crop_spec(), quarantine_options(2, file_));
  feed.all();
  std::map<SampleId, Json> lines;
  for (const Json& line : read_lines(file_)) lines[line["sample_id"]] = line;
  EXPECT_EQ(lines[3]["reason"], "empty");
  EXPECT_EQ(lines[11]["reason"], "truncated");
  EXPECT_GT(lines[11]["byte_offset"], 0);
  EXPECT_EQ(lines[12]["reason"], "not_an_image");
  EXPECT_EQ(lines[38]["reason"], "unreadable");
  EXPECT_EQ(lines[38]["message"], "read: Input/output error (5)");
}

TEST_F(QuarantineTest, AResumedRunGoesOnWithTheList) {
  Feed whole(*source_, crop_spec(), quarantine_options(2, file_));
  const size_t steps = whole.all().size();
  const std::vector<Json> expected = read_lines(file_);
  for (size_t stop = 0; stop <= steps; ++stop) {
    const std::string file = folder_.path() + "/resumed" + std::to_string(stop);
    LoaderOptions options = quarantine_options(2, file);
    { Feed(*source_, crop_spec(), options).take(static_cast<int64_t>(stop)); }
    options.first_step = static_cast<Step>(stop);
    Feed(*source_, crop_spec(), options).all();
    EXPECT_EQ(read_lines(file), expected) << "stopped after " << stop;
  }
}

TEST_F(QuarantineTest, MoreThanTheBudgetEndsTheFeedForAllDevices) {
  for (const int workers : {0, 2}) {
    for (const double max_bad : {4.0, 0.1, 0.124, 0.0}) {  // 40 samples: 4, 4, 4, 0 may be bad
      std::filesystem::remove(file_);
      LoaderOptions options = quarantine_options(workers, file_);
      options.batch_size = 4;
      options.feed.max_bad = max_bad;
      Feed feed(*source_, crop_spec(), options, 2);
      const std::string message = thrown_by<std::runtime_error>([&] { feed.all(); });
      const size_t bad = max_bad == 0 ? 1 : 5;
      EXPECT_GE(read_lines(file_).size(), bad);
      EXPECT_THAT(message, HasSubstr("bad samples in epoch 0: "));
      EXPECT_THAT(message, HasSubstr(max_bad == 0 ? "budget is 0 of 40" : "budget is 4 of 40"));
      EXPECT_THAT(message, HasSubstr("fake/"));
      EXPECT_THAT(message, HasSubstr(file_));
      for (const int device : {0, 1}) {
        for (int i = 0; i < 2; ++i) {
          EXPECT_EQ(thrown_by<std::runtime_error>(
                        [&] { feed.loader().next(device, feed.stream(device)); }),
                    message);
        }
      }
    }
  }
}

TEST_F(QuarantineTest, TheBudgetIsPerEpochAndReachingItIsAllowed) {
  LoaderOptions options = quarantine_options(2);
  options.feed.max_bad = 5;
  options.epochs = 4;
  Feed feed(*source_, crop_spec(), options);
  EXPECT_EQ(feed.all().size(), 20u);
  EXPECT_EQ(feed.loader().stats().bad_samples, 20);
}

TEST_F(QuarantineTest, OnBadSampleFailEndsWithTheFirst) {
  for (const int workers : {0, 2}) {
    LoaderOptions options = quarantine_options(workers, file_);
    options.shuffle = false;
    options.feed.on_bad_sample = OnBadSample::fail;
    options.batch_size = 3;  // sample 3 is in the second batch: the first is delivered
    Feed feed(*source_, crop_spec(), options);
    EXPECT_EQ(feed.take(1).size(), 1u);
    EXPECT_THAT(thrown_by<std::runtime_error>([&] { feed.take(1); }), HasSubstr("fake/3 (empty"));
  }
}

TEST(Quarantine, WithoutAnyGoodSampleRowsAreGrey) {
  const auto source = jpeg_source(5);
  for (SampleId id = 0; id < 5; ++id) source->replace(id, text_bytes("no picture"));
  const std::vector<Delivered> batches = Feed(*source, crop_spec(), quarantine_options(2)).all();
  const std::vector<uint8_t> grey(24 * 24 * 3, 128);
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].valid, 0);
  for (const DeliveredRow& row : batches[0].rows) {
    EXPECT_EQ(row.pixels, pixel_digest(grey));
    EXPECT_EQ(row.pixels_of, -1);
  }
}

TEST(Quarantine, WrapCountsASampleOncePerEpoch) {
  const auto source = jpeg_source(5);
  source->replace(0, {});
  LoaderOptions options = quarantine_options(2);
  options.shuffle = false;
  options.last_batch = LastBatch::wrap;  // 8 rows: 0 1 2 3 4 0 1 2
  Feed feed(*source, crop_spec(), options);
  feed.all();
  EXPECT_EQ(feed.loader().stats().bad_samples, 1);
}

// A folder with 5 % of its files truncated, empty, renamed text or random bytes.
TEST(Quarantine, AFolderWithFivePercentBadFilesGoesThrough) {
  TempFolder folder;
  const auto as_text = [](const std::vector<uint8_t>& bytes) {
    return std::string(bytes.begin(), bytes.end());
  };
  std::set<std::string> bad;
  for (int i = 0; i < 200; ++i) {
    const std::string name =
        "data/class" + std::to_string(i % 4) + "/" + std::to_string(1000 + i) + ".jpg";
    std::string content = as_text(jpeg_file(32 + i % 9, 30 + i % 7, static_cast<uint64_t>(i)));
    if (i % 20 == 7) {
      bad.insert(folder.path() + "/" + name);
      switch (i / 20 % 4) {
        case 0:
          content.resize(content.size() / 2);
          break;
        case 1:
          content.clear();
          break;
        case 2:
          content = "this was a text file";
          break;
        default:
          content = as_text(random_bytes(500));
      }
    }
    folder.write(name, content);
  }
  const auto source = open_source(folder.path() + "/data", Split::all);
  LoaderOptions options = quarantine_options(2, folder.path() + "/bad.jsonl");
  options.feed.max_bad = 0.05;
  int64_t counted = 0;
  for (const Delivered& batch : Feed(*source, crop_spec(), options).all()) counted += batch.valid;
  EXPECT_EQ(counted, 190);
  std::multiset<std::string> listed;
  for (const Json& line : read_lines(options.quarantine_file)) listed.insert(line["path"]);
  EXPECT_EQ(listed, std::multiset<std::string>(bad.begin(), bad.end()));
}

}  // namespace
}  // namespace stoker::testing
