// --cache decoded of the commands that feed rows: the same rows, receipts and results, what is
// printed about it, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/cli_harness.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

constexpr const char* kFixed = "resize_center_crop | flip";

// 40 pictures for training and 20 for evaluation, 48 pixels wide, written an hour ago.
class DecodedCacheCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = std::make_unique<TempFolder>();
    make_small_shapes(data_->path());
    const auto hour_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
    for (const auto& entry : fs::recursive_directory_iterator(data_->path())) {
      if (entry.is_regular_file()) fs::last_write_time(entry, hour_ago);
    }
  }
  static void TearDownTestSuite() { data_.reset(); }

  static Words with(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  ProgramResult train(const std::string& name, const std::string& augment, const Words& more) {
    return run_stoker(
        with({"train", "--data",    data_->path(), "--model",  "resnet20",  "--size",
              "32",    "--augment", augment,       "--batch",  "8",         "--micro-batch",
              "4",     "--seed",    "7",           "--epochs", "3",         "--eval-every",
              "1",     "--workers", "2",           "--out",    folder(name)},
             more));
  }
  std::string folder(const std::string& name) const { return out_.path() + "/" + name; }
  void same_runs(const std::string& a, const std::string& b) const {
    const ProgramResult diff = run_stoker({"receipt", "diff", folder(a), folder(b)});
    EXPECT_EQ(diff.exit_code, 0) << diff.out << diff.err;
    EXPECT_THAT(diff.out, HasSubstr("same"));
  }
  Words decoded(const std::string& where = "") const {
    const std::string place = where.empty() ? "decoded" : "decoded:" + folder(where);
    return {"--cache", place, "--cache-size", "10M"};
  }

  static inline std::unique_ptr<TempFolder> data_;
  TempFolder out_;
};

TEST_F(DecodedCacheCommand, TrainingAndEvaluationAreTheSame) {
  const ProgramResult plain = train("plain", kFixed, {});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_THAT(plain.out, Not(HasSubstr("cache")));
  for (const std::string where : {"", "disk"}) {
    const std::string name = "run" + where;
    Words options = decoded(where);
    options.emplace_back("--verbose");
    const ProgramResult run = train(name, kFixed, options);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const std::string place = where.empty() ? "in memory" : folder(where);
    EXPECT_THAT(run.out, AllOf(HasSubstr("cache, training: "), HasSubstr("cache, evaluation: "),
                               HasSubstr(" for 40 of 40 decoded pictures, " + place),
                               HasSubstr(" for 20 of 20 decoded pictures, " + place)));
    EXPECT_THAT(run.out, HasSubstr("training: 80 of 120 rows came from it (66.67%); 40 decoded"));
    EXPECT_THAT(run.out, HasSubstr("last evaluation: "));
    EXPECT_THAT(run.out, HasSubstr("(100.00%)"));
    EXPECT_EQ(run.out.find("decoded pictures up to") != std::string::npos, where.empty());
    same_runs("plain", name);
    const auto config = nlohmann::json::parse(read_text(folder(name) + "/config.json"));
    EXPECT_EQ(config["data"]["options"]["cache"][0], decoded(where)[1]);
  }
  // The next run finds it.
  const ProgramResult again = train("again", kFixed, decoded("disk"));
  EXPECT_THAT(again.out, HasSubstr("of which 40 are there"));
  EXPECT_THAT(again.out, HasSubstr("training: 120 of 120 rows came from it"));
  same_runs("plain", "again");
}

TEST_F(DecodedCacheCommand, ARandomRecipeLeavesItToTheEvaluationAndSaysSo) {
  const std::string random = "random_resized_crop | flip";
  ASSERT_EQ(train("plain", random, {}).exit_code, 0);
  const ProgramResult run = train("run", random, decoded());
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("cache, training: none; it cannot keep decoded pictures"));
  EXPECT_THAT(run.out, HasSubstr("cache, evaluation: "));
  EXPECT_THAT(run.out, Not(HasSubstr("training: 0 of")));
  same_runs("plain", "run");
  const ProgramResult alone =
      train("alone", random, with(decoded(), {"--eval-every", "0", "--split", "train"}));
  EXPECT_EQ(alone.exit_code, 2) << alone.out;
}

TEST_F(DecodedCacheCommand, EvaluationCountsTheSame) {
  ASSERT_EQ(train("run", kFixed, {"--epochs", "1"}).exit_code, 0);
  const Words eval = {"eval", "--checkpoint", folder("run"), "--data", data_->path(), "--json"};
  const auto numbers = [&](const Words& more, const char* part) {
    const ProgramResult result = run_stoker(with(eval, more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out).value(part, nlohmann::json());
  };
  const auto loss = numbers({}, "loss");
  EXPECT_TRUE(numbers({}, "cache").is_null());
  EXPECT_EQ(numbers(decoded("disk"), "loss"), loss);
  EXPECT_EQ(numbers(decoded("disk"), "loss"), loss);
  const auto cache = numbers(decoded("disk"), "cache");
  EXPECT_GE(cache["hits"], 20);
  EXPECT_EQ(cache["misses"], 0);
}

TEST_F(DecodedCacheCommand, DumpsAreTheSame) {
  const auto dump = [&](const std::string& name, const Words& more) {
    const ProgramResult result =
        run_stoker(with({"dump", "--data", data_->path(), "--size", "32", "--augment", kFixed,
                         "--batch", "40", "--out", folder(name)},
                        more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read_text(folder(name) + "/images_00000.npy") + read_text(folder(name) + "/rows.jsonl");
  };
  const std::string plain = dump("plain", {});
  EXPECT_EQ(dump("first", decoded("disk")), plain);
  EXPECT_EQ(dump("second", decoded("disk")), plain);
}

TEST_F(DecodedCacheCommand, ProfilesUseIt) {
  const ProgramResult result =
      run_stoker(with({"profile", "--data", data_->path(), "--size", "32", "--augment", kFixed,
                       "--batch", "8", "--demand", "500", "--seconds", "1", "--workers", "1"},
                      decoded("disk")));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::exists(folder("disk")));
}

TEST_F(DecodedCacheCommand, WhatCannotBeObeyedIsRefused) {
  const auto refused = [](const Words& words) {
    const ProgramResult result = run_stoker(words);
    EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
    return result.err;
  };
  const Words dump = {"dump", "--data", data_->path(), "--size",
                      "32",   "--out",  folder("out"), "--augment"};
  const auto dumped = [&](const std::string& augment, const Words& more) {
    return refused(with(with(dump, {augment}), more));
  };
  EXPECT_THAT(dumped("random_resized_crop", with(decoded(), {"--pixels", "fast"})),
              AllOf(HasSubstr("--cache cannot keep decoded pictures"),
                    HasSubstr("another part of each image in every epoch"), HasSubstr("fast")));
  EXPECT_THAT(dumped(kFixed, {"--cache", "decoded"}), HasSubstr("--cache: needs --cache-size"));
  EXPECT_THAT(dumped(kFixed, {"--cache-size", "5G"}), HasSubstr("--cache-size: needs --cache"));
  EXPECT_THAT(dumped(kFixed, {"--cache", "decoded:", "--cache-size", "5G"}),
              HasSubstr("needs a folder behind the colon"));
  EXPECT_THAT(dumped(kFixed, {"--cache", "decoded", "--cache-size", "none"}),
              HasSubstr("none is no size"));
  EXPECT_THAT(dumped(kFixed, {"--cache", folder("kept"), "--cache-size", "5G"}),
              AllOf(HasSubstr("no address in a store"), HasSubstr("--cache decoded")));
  EXPECT_THAT(refused(with({"check", "--data", data_->path()}, decoded())),
              HasSubstr("what train, eval, profile and dump feed"));
  EXPECT_THAT(refused(with({"bench", "feed", "--data", data_->path()}, decoded())),
              HasSubstr("what train, eval, profile and dump feed"));
  EXPECT_FALSE(fs::exists(folder("out")));
  EXPECT_FALSE(fs::exists(folder("kept")));
}

}  // namespace
}  // namespace stoker
