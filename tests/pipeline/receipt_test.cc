// The receipt: the same digests for any way to deliver the same epochs, and exact after a resume at
// any step.
#include "pipeline/receipt/receipt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/pipeline/receipt_support.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

using ::testing::HasSubstr;

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

TEST_F(ReceiptTest, MixedRowsAreDigestedAsTheyAreFed) {
  const std::vector<EpochDigest> plain = run("plain", {.batch = 8});
  augment_.mix = {.mixup_alpha = 0.4, .cutmix_alpha = 1};
  const std::vector<EpochDigest> mixed = run("a", {.batch = 8});
  const auto agree = [&](const std::vector<EpochDigest>& other) {
    ASSERT_EQ(other.size(), mixed.size());
    for (size_t i = 0; i < mixed.size(); ++i) {
      EXPECT_NE(mixed[i].digest, plain[i].digest);
      EXPECT_EQ(other[i].digest, mixed[i].digest) << "epoch " << i;
      EXPECT_EQ(other[i].rows, kSamples);
    }
  };
  agree(run("b", {.batch = 2, .workers = 2}));
  agree(run("c", {.batch = 64, .workers = 0}));
  agree(run("d", {.batch = 4, .devices = 4, .workers = 2}));
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
    return thrown_by<std::runtime_error>([&] { run("a", other); });
  };
  EXPECT_THAT(message({.seed = 99, .first_step = 3}), HasSubstr("of another run"));
  EXPECT_THAT(message({.batch = 4, .first_step = 3}), HasSubstr("of another run"));
  EXPECT_THAT(message({.first_step = 8}), HasSubstr("has steps 0 to 5"));
  EXPECT_EQ(message({.first_step = 5}), "nothing was thrown");
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

}  // namespace
}  // namespace stoker::testing
