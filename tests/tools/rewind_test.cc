// stoker rewind as a user runs it: the rows of a step, spikes, a replay, and one clear line for
// what cannot work. (The pixels and the bits: tests/train/rewind_test.cc.)

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/tools/train_runs.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RewindCommand : public TrainRuns {
 protected:
  void train(const std::string& name, const std::vector<std::string>& more = {}) {
    const ProgramResult result = run_program(
        with(with(command(name, 3), {"--checkpoint-steps", "5", "--keep", "10"}), more));
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  ProgramResult rewind(const std::string& name, const std::vector<std::string>& more) const {
    return run_stoker(with({"rewind", run_folder(name)}, more));
  }
  nlohmann::json rewound(const std::string& name, const std::vector<std::string>& more) const {
    const std::string file = out_.path() + "/step.json";
    const ProgramResult result = rewind(name, with(more, {"--json", file}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(read_text(file));
  }
};

TEST_F(RewindCommand, ShowsTheRowsOfAStep) {
  train("a", {"--row-losses"});
  const auto json = rewound("a", {"--step", "17"});
  EXPECT_EQ(json["step"], 17);
  EXPECT_EQ(json["epoch"], 1);
  EXPECT_TRUE(json["receipt"]["same"].get<bool>()) << json["receipt"];
  ASSERT_EQ(json["rows"].size(), 4u);
  double sum = 0, last = 1e9;
  for (const auto& row : json["rows"]) {
    EXPECT_THAT(row["name"].get<std::string>(), HasSubstr(".jpg"));
    EXPECT_NE(row["label"], "");
    EXPECT_LE(row["loss"].get<double>(), last);
    last = row["loss"];
    sum += last;
  }
  EXPECT_NEAR(sum / 4, json["loss"].get<double>(), 0.05);

  const std::string page = out_.path() + "/step.html";
  const ProgramResult result = rewind("a", {"--step", "17", "--count", "3", "-o", page});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("step 17 of "));
  EXPECT_THAT(result.out, HasSubstr("the pixels are those of the receipt"));
  EXPECT_THAT(result.out, HasSubstr("and 1 rows more"));
  const std::string html = read_text(page);
  size_t pictures = 0;
  for (size_t at = 0; (at = html.find("data:image/png;base64,iVBOR", at)) != std::string::npos;
       ++at) {
    ++pictures;
  }
  EXPECT_EQ(pictures, 3u);
}

TEST_F(RewindCommand, ReplaysAStepAndLeavesARowOut) {
  train("a", {"--devices", "cpu:2", "--threads", "2"});
  const auto rows = rewound("a", {"--step", "17"})["rows"];
  EXPECT_FALSE(rows[0].contains("loss")) << "this run kept no losses of rows";
  const std::string name = rows[2]["name"];
  const auto json = rewound("a", {"--step", "17", "--without", name});
  EXPECT_EQ(json["replay"]["first_step"], 15);
  EXPECT_EQ(json["replay"]["difference"], "");
  EXPECT_EQ(json["replay"]["compared"], 3);
  ASSERT_EQ(json["replay"]["outcomes"].size(), 2u);
  EXPECT_EQ(json["replay"]["outcomes"][1]["without"], name);
  EXPECT_NE(json["replay"]["outcomes"][0]["loss"], json["replay"]["outcomes"][1]["loss"]);
  EXPECT_TRUE(json["rows"][0].contains("gradient_share"));
  EXPECT_TRUE(std::filesystem::exists(run_folder("a") + "/receipt.json"));
  EXPECT_EQ(weights("a", 18), "") << "a replay wrote into the run";
}

TEST_F(RewindCommand, AChangedPictureIsNamed) {
  train("a");
  const auto before = rewound("a", {"--step", "4"})["rows"];
  const std::string name = before[1]["name"];
  const std::string file = data() + "/" + name,
                    other = data() + "/" + before[2]["name"].get<std::string>();
  const TempFolder kept;
  std::filesystem::copy_file(file, kept.path() + "/kept");
  std::filesystem::copy_file(other, file, std::filesystem::copy_options::overwrite_existing);
  const auto json = rewound("a", {"--step", "4"});
  std::filesystem::copy_file(kept.path() + "/kept", file,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_FALSE(json["receipt"]["same"].get<bool>());
  EXPECT_THAT(json["receipt"]["text"].get<std::string>(), HasSubstr("1 of 4 rows have changed"));
  for (const auto& row : json["rows"]) {
    EXPECT_EQ(row["note"] == "not what it was in the run", row["name"] == name);
  }
}

TEST_F(RewindCommand, ShowsThePartnersOfMixedRows) {
  train("mixed", {"--augment", "random_resized_crop(32) | flip | mix(mixup=0.4)"});
  const auto json = rewound("mixed", {"--step", "7", "--replay"});
  EXPECT_TRUE(json["receipt"]["same"].get<bool>()) << json["receipt"];
  EXPECT_EQ(json["replay"]["difference"], "");
  EXPECT_THAT(json["rows"][0]["note"].get<std::string>(), HasSubstr("% of train/"));
}

TEST_F(RewindCommand, ShowsTheSubstituteOfABadSample) {
  const TempFolder own;
  make_small_shapes(own.path());
  const auto words = with(command("bad", 1), {"--max-bad", "3"});
  const auto names = [&](const nlohmann::json& json, size_t row) -> std::string {
    return json["rows"][row]["name"];
  };
  train("whole");
  const std::string bad = names(rewound("whole", {"--step", "6"}), 2);
  std::ofstream(own.path() + "/" + bad) << "no picture";
  auto with_own = words;
  std::ranges::replace(with_own, data(), own.path());
  ASSERT_EQ(run_program(with_own).exit_code, 0);
  const auto json = rewound("bad", {"--step", "6", "--replay"});
  EXPECT_TRUE(json["receipt"]["same"].get<bool>()) << json["receipt"];
  EXPECT_EQ(json["replay"]["difference"], "");
  const auto& row = json["rows"].back();  // without a loss
  EXPECT_EQ(row["name"], bad);
  EXPECT_EQ(row["weight"], 0);
  EXPECT_THAT(row["note"].get<std::string>(), HasSubstr("bad: "));
  EXPECT_THAT(row["note"].get<std::string>(), HasSubstr(", the picture of train/"));
}

TEST_F(RewindCommand, ASpikeIsFoundAndRewound) {
  train("a");
  std::string steps = read_text(run_folder("a") + "/steps.bin");
  ASSERT_EQ(steps.size(), 30u * 24);
  float loss = 400;
  std::memcpy(steps.data() + 21 * 24 + 8, &loss, sizeof loss);
  std::ofstream(run_folder("a") + "/steps.bin", std::ios::binary) << steps;
  const auto json = rewound("a", {"--spike"});
  EXPECT_EQ(json["step"], 21);
  EXPECT_EQ(json["spikes"][0]["step"], 21);
  EXPECT_THAT(rewind("a", {"--spike"}).out, HasSubstr("stand out from the 25 before"));
}

TEST_F(RewindCommand, RanksSamplesForASubset) {
  train("a", {"--row-losses"});
  const std::string list = out_.path() + "/list.txt", rest = out_.path() + "/rest.txt";
  const ProgramResult hardest = rewind("a", {"--rank", "hardest", "--count", "3", "--list", list});
  EXPECT_EQ(hardest.exit_code, 0) << hardest.err;
  EXPECT_THAT(hardest.out, HasSubstr("40 of 40 samples by their mean loss"));
  EXPECT_THAT(hardest.out, HasSubstr("of 3 "));  // each came in three epochs
  EXPECT_THAT(hardest.out, HasSubstr("and 37 more"));
  EXPECT_EQ(count_lines(read_text(list)), 40);
  ASSERT_EQ(rewind("a", {"--rank", "never", "--list", list, "--rest", rest}).exit_code, 0);
  const int never = count_lines(read_text(list));
  EXPECT_GT(never, 0) << "three epochs of ten steps have taught it everything";
  EXPECT_EQ(never + count_lines(read_text(rest)), 40);
  const ProgramResult again =
      run_program(with(command("b", 1), {"--subset", never < 40 ? rest : list}));
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_F(RewindCommand, FindsCopies) {
  train("a");
  const auto rows = rewound("a", {"--step", "0"})["rows"];
  const std::string names[] = {rows[0]["name"], rows[1]["name"]};
  const TempFolder kept;
  const auto over = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(data() + "/" + names[0], kept.path() + "/kept");
  std::filesystem::copy_file(data() + "/" + names[1], data() + "/" + names[0], over);
  const std::string list = out_.path() + "/list.txt";
  const ProgramResult found = rewind("a", {"--rank", "duplicates", "--list", list});
  std::filesystem::copy_file(kept.path() + "/kept", data() + "/" + names[0], over);
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("1 of 40 samples whose bytes another one had before"));
  EXPECT_EQ(read_text(list), std::max(names[0], names[1]) + "\n");
}

TEST_F(RewindCommand, SaysInOneLineWhatCannotWork) {
  train("a");
  const auto refuses = [&](const std::vector<std::string>& more, const std::string& why) {
    const ProgramResult result = rewind("a", more);
    EXPECT_EQ(result.exit_code, 2) << why;
    EXPECT_EQ(count_lines(result.err), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(why));
  };
  refuses({}, "--step, --spike or --rank is required");
  refuses({"--step", "3", "--list", "x"}, "--list: they are of --rank");
  refuses({"--rank", "never", "--step", "3"}, "--step: --rank is of the whole run");
  for (const std::string step : {"30", "9007199254740992"}) {
    refuses({"--step", step}, "step " + step + ": the run's recipe has steps 0 to 29");
  }
  refuses({"--step", "3", "--without", "nobody"},
          "--without: no row of this step that counts is 'nobody'");
  const ProgramResult unkept = rewind("a", {"--rank", "never"});
  EXPECT_EQ(unkept.exit_code, 3);
  EXPECT_THAT(unkept.err, HasSubstr("no row_losses.bin: train --row-losses keeps them"));
  const ProgramResult none = run_stoker({"rewind", out_.path(), "--step", "1"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("there is no config.json"));
}

}  // namespace
}  // namespace stoker
