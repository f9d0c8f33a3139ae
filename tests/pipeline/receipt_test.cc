// The receipt: the same digests for any way of delivering the same epochs, exact after a resume at
// any step, and a diff that names the first epoch, step and sample.
#include "pipeline/receipt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "pipeline/receipt_diff.h"
#include "pipeline/synthetic_source.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/temp_folder.h"

namespace stoker::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
constexpr int64_t kSamples = 53;

struct Delivery {
  int batch = 8;  // per device
  int devices = 1;
  int rank = 0;
  int world = 1;
  int workers = 1;
  double epochs = 3;
  uint64_t seed = 4;
  Step first_step = 0;
  int64_t steps = 1 << 30;  // at most
  int64_t max_row_bytes = Receipt::kMaxRowBytes;
  bool save = true;
  bool digests = true;
};

class ReceiptTest : public ::testing::Test {
 protected:
  LoaderOptions options_of(const Delivery& run) {
    LoaderOptions options;
    options.batch_size = run.batch;
    options.workers = run.workers;
    options.epochs = run.epochs;
    options.seed = run.seed;
    options.rank = run.rank;
    options.world = run.world;
    options.first_step = run.first_step;
    options.max_bad = 10;
    options.digests = run.digests;
    return options;
  }

  // Delivers into the receipt in folder `name`; all devices' batches through one thread.
  std::vector<EpochDigest> run(const std::string& name, const Delivery& run) {
    const LoaderOptions options = options_of(run);
    std::vector<std::unique_ptr<Device>> devices;
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<Device*> pointers;
    for (int i = 0; i < run.devices; ++i) {
      devices.push_back(make_host_device(i));
      streams.push_back(devices.back()->make_stream());
      pointers.push_back(devices.back().get());
    }
    Loader loader(source(), augment_, pointers, options);
    ReceiptInfo info = receipt_info(loader, source(), augment_, options, run.devices);
    info.version = "1.2.3";
    info.libraries = {{"libjpeg-turbo", "2.1.5"}};
    Receipt receipt(path(name), info, run.first_step, run.max_row_bytes);
    const int64_t steps = std::min(run.steps, loader.end_step() - run.first_step);
    for (int64_t step = 0; step < steps; ++step) {
      for (int device = run.devices - 1; device >= 0; --device) {
        const DeviceBatch batch = loader.next(device, *streams[device]);
        receipt.add(device, batch);
      }
    }
    if (run.save) receipt.save();
    return receipt.epochs();
  }

  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  nlohmann::json json(const std::string& name) const {
    return nlohmann::json::parse(std::ifstream(path(name) + "/receipt.json"));
  }
  void expect_same_files(const std::string& a, const std::string& b) const {
    for (const char* file : {"receipt.json", "receipt_steps.bin", "receipt_rows.bin"}) {
      const auto content = [&](const std::string& name) {
        std::ifstream stream(path(name) + "/" + file, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(stream), {});
      };
      EXPECT_EQ(content(a), content(b)) << file << " of " << a << " and " << b;
    }
  }
  virtual const Source& source() { return *raw_; }

  TempFolder folder_;
  std::unique_ptr<Source> raw_ = make_synthetic_source(kSamples, {16, 16}, 5, 2);
  AugmentSpec augment_ = pad_spec();
};

TEST_F(ReceiptTest, EpochsAgreeForAnyWayOfDelivering) {
  const std::vector<EpochDigest> expected = run("a", {.workers = 0});
  ASSERT_EQ(expected.size(), 3u);
  for (const EpochDigest& epoch : expected) {
    EXPECT_EQ(epoch.rows, kSamples);
    EXPECT_TRUE(epoch.complete);
  }
  EXPECT_NE(expected[0].digest, expected[1].digest);
  const auto agree = [&](const std::vector<EpochDigest>& epochs) {
    ASSERT_EQ(epochs.size(), 3u);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(epochs[i].digest, expected[i].digest);
      EXPECT_EQ(epochs[i].rows, kSamples);
      EXPECT_TRUE(epochs[i].complete);
    }
  };
  agree(run("b", {.workers = 2}));
  agree(run("c", {.batch = 5, .workers = 2}));
  agree(run("d", {.batch = 1}));
  agree(run("e", {.batch = 100}));
  agree(run("f", {.batch = 4, .devices = 2}));
  agree(run("g", {.batch = 2, .devices = 4, .workers = 2}));
  for (const char* other : {"b", "c", "d", "e", "f", "g"}) {
    const ReceiptDifference difference = receipt_diff(path("a"), path(other));
    EXPECT_TRUE(difference.same) << other << ": " << difference.text;
  }
}

TEST_F(ReceiptTest, PartsOfRanksAddUp) {
  run("one", {.batch = 8});
  for (int rank = 0; rank < 2; ++rank) {
    run("ranks", {.batch = 2, .devices = 2, .rank = rank, .world = 2});
  }
  EXPECT_TRUE(receipt_diff(path("one"), path("ranks")).same);
  EXPECT_TRUE(receipt_diff(path("ranks"), path("one")).same);
  for (int rank = 0; rank < 3; ++rank) run("three", {.batch = 3, .rank = rank, .world = 3});
  EXPECT_TRUE(receipt_diff(path("one"), path("three")).same);
  for (int rank = 0; rank < 2; ++rank) {
    run("other", {.batch = 2, .devices = 2, .rank = rank, .world = 2, .seed = 5});
  }
  EXPECT_FALSE(receipt_diff(path("one"), path("other")).same);
}

TEST_F(ReceiptTest, ResumedAnywhereIsTheSameAsNeverStopped) {
  const std::vector<EpochDigest> expected = run("whole", {.devices = 2});
  const int64_t steps = json("whole")["next_step"];
  ASSERT_EQ(steps, 12);
  for (Step stop = 0; stop <= steps; ++stop) {
    const std::string name = "stopped" + std::to_string(stop);
    run(name, {.devices = 2, .steps = stop});
    EXPECT_EQ(run(name, {.devices = 2, .first_step = stop}), expected);
    expect_same_files(name, "whole");
  }
}

TEST_F(ReceiptTest, WhatCameAfterTheCheckpointIsForgotten) {
  const std::vector<EpochDigest> expected = run("whole", {});
  run("killed", {.steps = 9});
  EXPECT_EQ(run("killed", {.first_step = 4}), expected);
  expect_same_files("killed", "whole");
  run("unsaved", {.steps = 5});
  run("unsaved", {.first_step = 5, .steps = 6, .save = false});  // writes, but never saves
  EXPECT_EQ(run("unsaved", {.first_step = 5}), expected);
  expect_same_files("unsaved", "whole");
}

TEST_F(ReceiptTest, RefusesToGoOnFromAnotherRun) {
  run("a", {.steps = 5});
  const auto message = [&](const Delivery& other) {
    try {
      run("a", other);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(message({.seed = 99, .first_step = 3}), HasSubstr("of another run"));
  EXPECT_THAT(message({.batch = 4, .first_step = 3}), HasSubstr("of another run"));
  EXPECT_THAT(message({.first_step = 8}), HasSubstr("has steps 0 to 5"));
  EXPECT_EQ(message({.first_step = 5}), "accepted");
}

TEST_F(ReceiptTest, WithoutAReceiptAPartBegins) {
  run("whole", {});
  run("part", {.first_step = 10});
  EXPECT_EQ(json("part")["first_step"], 10);
  EXPECT_EQ(json("part")["epochs"][0]["complete"], false);
  EXPECT_TRUE(receipt_diff(path("whole"), path("part")).same);
  EXPECT_TRUE(receipt_diff(path("part"), path("whole")).same);
}

TEST_F(ReceiptTest, NeedsDigests) {
  EXPECT_THROW(run("a", {.digests = false}), std::invalid_argument);
}

TEST_F(ReceiptTest, TheFileSaysWhatTheRunWas) {
  run("a", {.devices = 2});
  const nlohmann::json all = json("a");
  EXPECT_EQ(all["stoker"], "1.2.3");
  EXPECT_EQ(all["seed"], 4);
  EXPECT_EQ(all["global_batch"], 16);
  EXPECT_EQ(all["libraries"]["libjpeg-turbo"], "2.1.5");
  EXPECT_EQ(all["policies"]["pixels"], "exact");
  EXPECT_EQ(all["fingerprint"].get<std::string>().size(), 16u);
  ASSERT_EQ(all["epochs"].size(), 3u);
  EXPECT_EQ(all["epochs"][2]["epoch"], 2);
  EXPECT_EQ(all["epochs"][2]["step_digests"].size(), 4u);
  EXPECT_EQ(all["epochs"][2]["digest"].get<std::string>().size(), 32u);
}

// Changes one sample's pixels, or everything from a point on: the diff must find the first.
class ReceiptDiffTest : public ReceiptTest {
 protected:
  ReceiptDiffTest() : files_(jpeg_source(kSamples)) { augment_ = crop_spec(16); }
  const Source& source() override { return *files_; }
  // Where sample `id` lies in `epoch` of a run with global batch `batch`.
  Step step_of(SampleId id, int64_t epoch, int batch) {
    const Sampler sampler({.samples = kSamples, .rows = batch, .replicas = 1, .seed = 4});
    for (int64_t position = 0; position < kSamples; ++position) {
      if (sampler.permute(epoch, position) == id) {
        return epoch * sampler.steps_per_epoch() + position / batch;
      }
    }
    return -1;
  }
  std::unique_ptr<FakeSource> files_;
};

TEST_F(ReceiptDiffTest, NamesTheFirstEpochStepAndSample) {
  run("a", {});
  run("a5", {.batch = 5, .devices = 2});
  files_->replace(17, jpeg_file(31, 33, 1000));
  run("b", {.workers = 2});
  ReceiptDifference found = receipt_diff(path("a"), path("b"));
  EXPECT_FALSE(found.same);
  EXPECT_EQ(found.epoch, 0);
  EXPECT_EQ(found.step, step_of(17, 0, 8));
  EXPECT_EQ(found.sample, 17);
  EXPECT_THAT(found.text, StartsWith("they part in epoch 0, step " + std::to_string(found.step) +
                                     ", sample 17"));
  found = receipt_diff(path("a5"), path("b"));  // another global batch
  EXPECT_FALSE(found.same);
  EXPECT_EQ(found.step, step_of(17, 0, 10));
  EXPECT_EQ(found.sample, 17);
  EXPECT_THAT(found.text, HasSubstr("global_batch: 10 and 8"));
}

TEST_F(ReceiptDiffTest, FindsADifferenceInALaterEpoch) {
  run("a", {});
  run("b", {.steps = 8});  // one epoch and a step of 7 per epoch
  files_->replace(30, jpeg_file(31, 33, 1000));
  run("b", {.first_step = 8});
  const ReceiptDifference found = receipt_diff(path("a"), path("b"));
  EXPECT_FALSE(found.same);
  const Step in_epoch_1 = step_of(30, 1, 8);
  EXPECT_EQ(found.epoch, in_epoch_1 >= 8 ? 1 : 2);
  EXPECT_EQ(found.step, in_epoch_1 >= 8 ? in_epoch_1 : step_of(30, 2, 8));
  EXPECT_EQ(found.sample, 30);
}

// Also of the rows: here they were others before the run was set back.
TEST_F(ReceiptDiffTest, RowsAreSetBackToo) {
  run("whole", {});
  SampleId id = 0;
  while (step_of(id, 0, 8) < 4) ++id;
  files_->replace(id, jpeg_file(31, 33, 1000));
  run("killed", {.steps = 9});
  files_ = jpeg_source(kSamples);
  run("killed", {.first_step = 4});
  expect_same_files("killed", "whole");
}

TEST_F(ReceiptDiffTest, ABadSampleInOneRunIsADifference) {
  run("a", {});
  run("a5", {.batch = 5});
  files_->replace(8, {});
  run("b", {});
  for (const char* good : {"a", "a5"}) {
    EXPECT_EQ(receipt_diff(path(good), path("b")).sample, 8);
    EXPECT_EQ(receipt_diff(path("b"), path(good)).sample, 8);
  }
}

TEST_F(ReceiptDiffTest, WithoutRowsTheStepIsNamed) {
  run("a", {.max_row_bytes = 10 * 8});
  files_->replace(17, jpeg_file(31, 33, 1000));
  run("b", {.max_row_bytes = 10 * 8});
  const ReceiptDifference found = receipt_diff(path("a"), path("b"));
  EXPECT_EQ(found.step, step_of(17, 0, 8));
  if (found.step > 0) {
    EXPECT_THAT(found.text, HasSubstr("sample unknown"));
  }
  EXPECT_EQ(std::filesystem::file_size(path("a") + "/receipt_rows.bin"), 8u * 8);
}

TEST_F(ReceiptDiffTest, ComparesWhatBothHave) {
  run("three", {});
  run("one_and_a_half", {.steps = 10});
  const ReceiptDifference found = receipt_diff(path("three"), path("one_and_a_half"));
  EXPECT_TRUE(found.same);
  EXPECT_THAT(found.text, StartsWith("same: 2 common epochs"));
  run("other_batch", {.batch = 3, .steps = 25});
  EXPECT_TRUE(receipt_diff(path("three"), path("other_batch")).same);
}

TEST_F(ReceiptDiffTest, SaysWhichReceiptCannotBeRead) {
  run("a", {});
  try {
    receipt_diff(path("a"), path("none"));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("none"));
  }
  std::filesystem::resize_file(path("a") + "/receipt_steps.bin", 40);
  EXPECT_THROW(receipt_diff(path("a"), path("a")), std::runtime_error);
}

}  // namespace
}  // namespace stoker::testing
