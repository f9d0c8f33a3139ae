// --subset, --weights, --blend and --shuffle-blocks of the real program: what stoker dump then
// writes, what train and eval take, that a run resumes exactly with them and only with them, and
// names in receipt diff.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "pipeline/source.h"
#include "pipeline/source/subset_source.h"
#include "tests/tools/train_runs.h"
#include "tools/command/run_folder.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using UnorderedJson = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

class SampleOptions : public TrainRuns {
 protected:
  // Training data and test data of other pictures of the same classes: 20 and 10 samples.
  static void SetUpTestSuite() {
    TrainRuns::SetUpTestSuite();
    other_ = std::make_unique<TempFolder>();
    const ProgramResult made = run_stoker({"make-shapes", "--out", other_->path(), "--count", "20",
                                           "--test-count", "10", "--size", "48", "--seed", "5"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  static void TearDownTestSuite() {
    other_.reset();
    TrainRuns::TearDownTestSuite();
  }
  const std::string& other() const { return other_->path(); }
  Words blend() const { return {"--blend", data() + "=3", "--blend", other() + "=1"}; }

  // Returns the rows that count.
  std::vector<UnorderedJson> dump(const Words& more) const {
    const std::string out = run_folder("dump");
    fs::remove_all(out);
    const ProgramResult result =
        run_stoker(with({"dump", "--out", out, "--size", "16", "--batch", "20"}, more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::vector<UnorderedJson> rows;
    std::istringstream lines(read_text(out + "/rows.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      UnorderedJson row = UnorderedJson::parse(line);
      if (row["weight"] > 0) rows.push_back(std::move(row));
    }
    return rows;
  }
  static std::map<std::string, int> counts(const std::vector<UnorderedJson>& rows,
                                           const char* field) {
    std::map<std::string, int> count;
    for (const UnorderedJson& row : rows) ++count[row[field].dump()];
    return count;
  }
  // Returns the one line of a refused command, after "stoker train: " and before the hint.
  static std::string refusal(const Words& words) {
    const ProgramResult result = run_program(words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(count_lines(result.err), 1) << result.err;
    const size_t begin = result.err.find(": ") + 2, end = result.err.find(" (see stoker");
    return result.err.substr(begin, end - begin);
  }
  std::string dump_refusal(const Words& more) const {
    const std::string out = run_folder("refused");
    const std::string line = refusal(with({STOKER_PROGRAM, "dump", "--out", out}, more));
    EXPECT_FALSE(fs::exists(out)) << line;
    return line;
  }
  // A training without --data and its value.
  Words without_data(const std::string& name, int epochs) const {
    Words words = command(name, epochs);
    words.erase(words.begin() + 2, words.begin() + 4);
    return words;
  }
  UnorderedJson config(const std::string& name) const {
    return UnorderedJson::parse(read_text(run_folder(name) + "/config.json"));
  }
  UnorderedJson receipt(const std::string& name) const {
    return UnorderedJson::parse(read_text(run_folder(name) + "/receipt.json"));
  }
  void expect_same_weights(const std::string& a, const std::string& b, int step) const {
    ASSERT_NE(weights(a, step), "");
    EXPECT_TRUE(weights(a, step) == weights(b, step)) << "the weights differ";
  }
  // Trains 2 epochs at once, and again in two processes, and compares.
  void expect_exact_resume(const Words& more, int steps) const {
    ASSERT_EQ(run_program(with(without_data("whole", 2), more)).exit_code, 0);
    const Words parts = with(without_data("parts", 2), more);
    const std::string third = std::to_string(steps / 3);
    ASSERT_EQ(run_program(with(parts, {"--max-steps", third})).exit_code, 0);
    const ProgramResult rest = run_program(with(parts, {"--resume"}));
    ASSERT_EQ(rest.exit_code, 0) << rest.err;
    EXPECT_THAT(rest.out, HasSubstr("resumed from"));
    expect_same_weights("whole", "parts", steps);
    EXPECT_EQ(receipt("whole")["epochs"], receipt("parts")["epochs"]);
  }

  static inline std::unique_ptr<TempFolder> other_;
};

TEST_F(SampleOptions, PartsOfTheDataAreThoseOfARandomSplit) {
  const auto source = open_source(data(), Split::train);
  const auto lists = random_split(source->size(), {0.9, 0.1}, 0);
  for (const size_t part : {0, 1}) {
    std::set<std::string> expected, found;
    for (const SampleId id : lists[part]) expected.insert(source->name(id));
    for (const UnorderedJson& row :
         dump({"--data", data(), "--subset", part == 0 ? "part=0:0.9" : "part=0.9:1"})) {
      EXPECT_LT(row["sample_id"], expected.size());
      EXPECT_TRUE(found.insert(row["name"]).second) << row;
    }
    EXPECT_EQ(found, expected);
  }
}

TEST_F(SampleOptions, ASubsetIsOfClassesOrOfAList) {
  const std::vector<UnorderedJson> rows = dump({"--data", data(), "--subset", "classes=disc,3"});
  EXPECT_EQ(counts(rows, "label"), (std::map<std::string, int>{{"3", 4}, {"4", 4}}));
  // The names that dump prints can be given back.
  std::string names;
  for (int i = 5; i >= 3; --i) names += rows[i]["name"].get<std::string>() + "\n";
  const std::vector<UnorderedJson> listed =
      dump({"--data", data(), "--subset", out_.write("names", names), "--no-shuffle"});
  ASSERT_EQ(listed.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(listed[i]["sample_id"], i);
    EXPECT_EQ(listed[i]["name"], rows[5 - i]["name"]);
    EXPECT_EQ(listed[i]["label"], rows[5 - i]["label"]);
  }
  const std::vector<UnorderedJson> numbers =
      dump({"--data", data(), "--subset", out_.write("numbers", "7\n2\n"), "--no-shuffle"});
  const auto source = open_source(data(), Split::train);
  ASSERT_EQ(numbers.size(), 2u);
  EXPECT_EQ(numbers[0]["name"], source->name(7));
  EXPECT_EQ(numbers[1]["name"], source->name(2));
}

TEST_F(SampleOptions, BalancedWeightsTakeClassesEquallyOften) {
  // 4 samples of class 0, 1 of class 1, and so on.
  const std::string list = out_.write("list", "0\n1\n2\n3\n4\n8\n12\n16\n");
  const std::vector<UnorderedJson> rows =
      dump({"--data", data(), "--subset", list, "--weights", "balanced"});
  ASSERT_EQ(rows.size(), 8u);
  for (const auto& [label, count] : counts(rows, "label")) {
    EXPECT_GE(count, 1) << label;
    EXPECT_LE(count, 2) << label;
  }
  EXPECT_EQ(counts(rows, "label").size(), 5u);
}

TEST_F(SampleOptions, AFileOfWeightsSaysHowOftenSamplesCome) {
  const std::string base = "arrow 0\nbowtie 0\ncrescent 0\ncross 0\nheart 0\nring 0\nsquare 0\n";
  const std::string classes = out_.write("classes", base + "star 0\ntriangle 1\ndisc 3\n");
  const std::vector<UnorderedJson> rows =
      dump({"--data", data(), "--weights", classes, "--steps", "40"});
  const auto of_label = counts(rows, "label");
  ASSERT_EQ(of_label.size(), 2u);
  EXPECT_EQ(rows.size(), 800u);  // 20 epochs: each as long as the data
  EXPECT_NEAR(of_label.at("4"), 600, 60) << "five standard deviations";
  // One per sample of the subset, not of the data.
  const Words subset = {"--data", data(), "--subset", "classes=disc"};
  const std::vector<UnorderedJson> one =
      dump(with(subset, {"--weights", out_.write("four", "0\n0\n1.5\n0\n")}));
  ASSERT_EQ(one.size(), 4u);
  EXPECT_EQ(counts(one, "sample_id"), (std::map<std::string, int>{{"2", 4}}));
  EXPECT_EQ(dump_refusal(with(subset, {"--weights", out_.write("three", "1\n1\n1\n")})),
            "--weights: " + out_.path() + "/three: it has 3 weights, and there are 4 samples");
}

TEST_F(SampleOptions, ABlendGivesEachDataSetItsShare) {
  const std::vector<UnorderedJson> rows =
      dump(with(blend(), {"--steps", "6"}));  // two epochs of 60
  ASSERT_EQ(rows.size(), 120u);
  std::map<bool, int> of_first;
  int in_batch = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool first = rows[i]["sample_id"] < 40;
    ++of_first[first];
    const std::string root = first ? data() : other();
    EXPECT_THAT(rows[i]["name"], HasSubstr(fs::path(root).filename().string() + "/train/"));
    in_batch += first;
    if (i % 20 != 19) continue;
    EXPECT_EQ(in_batch, 15) << "in the batch that ends with row " << i;
    in_batch = 0;
  }
  EXPECT_EQ(of_first[true], 90);
  EXPECT_EQ(of_first[false], 30);
}

TEST_F(SampleOptions, BlocksComeTogether) {
  const std::vector<UnorderedJson> rows =
      dump({"--data", data(), "--shuffle-blocks", "4x2", "--batch", "8"});
  std::set<int> all;
  for (size_t first = 0; first + 8 <= rows.size(); first += 8) {
    std::set<int> pool;
    for (size_t i = first; i < first + 8; ++i) pool.insert(rows[i]["sample_id"].get<int>());
    int blocks = 0;
    for (const int id : pool) blocks += !pool.contains((id + 39) % 40);
    EXPECT_LE(blocks, 2);
    all.insert(pool.begin(), pool.end());
  }
  EXPECT_EQ(all.size(), 40u);
}

TEST_F(SampleOptions, AreRefusedInOneSentence) {
  const std::string folder = out_.path();
  const std::vector<std::pair<Words, std::string>> cases = {
      {{}, "--data is required, or --blend in its place"},
      {with(blend(), {"--data", data()}), "--data: --blend names the data"},
      {with(blend(), {"--weights", "balanced"}), "--weights: --blend says how often samples come"},
      {with(blend(), {"--subset", "part=0:1"}),
       "--subset: it is of one data set, and --blend names several"},
      {with(blend(), {"--no-shuffle"}),
       "--no-shuffle: --weights, --blend and --shuffle-blocks say in which order samples come"},
      {{"--data", data(), "--weights", "balanced", "--no-shuffle"},
       "--no-shuffle: --weights, --blend and --shuffle-blocks say in which order samples come"},
      {with(blend(), {"--shuffle-blocks", "4"}),
       "--blend: --shuffle-blocks takes every sample once"},
      {{"--data", data(), "--weights", "balanced", "--shuffle-blocks", "4x2"},
       "--weights: --shuffle-blocks takes every sample once"},
      {{"--data", data(), "--shuffle-blocks", "4", "--no-shuffle"},
       "--no-shuffle: --weights, --blend and --shuffle-blocks say in which order samples come"},
      {{"--data", data(), "--shuffle-blocks", "4x"},
       "--shuffle-blocks: '4x' is neither a number of samples nor two, as 16x64"},
      {{"--data", data(), "--shuffle-blocks", "0"},
       "--shuffle-blocks: block-shuffled order: block is 0, must be 1 to 2^20"},
      {{"--blend", data() + "=0"},
       "--blend: '" + data() + "=0': the weight is 0, must be a finite number above 0"},
      {{"--blend", data()}, "--blend: '" + data() + "' is not PATH=WEIGHT, as in data/photos=3"},
      {{"--blend", data() + "=1", "--blend", data() + "/train/disc=2"},
       "--blend: " + data() +
           "/train/disc: no class folders there (expected <class>/<image>); found 4 entries: "
           "disc_000000.jpg, disc_000001.jpg, disc_000002.jpg, disc_000003.jpg"},
      {{"--data", data(), "--subset", ""}, "--subset: it is empty"},
      {{"--data", data(), "--weights", ""}, "--weights: it is empty"},
      {{"--data", data(), "--subset", folder + "/none"},
       "--subset: " + folder +
           "/none: no such file (a subset is part=A:B, classes=NAME,... or a file)"},
      {{"--data", data(), "--weights", folder + "/none"},
       "--weights: " + folder + "/none: no such file (weights are balanced, or a file)"}};
  for (const auto& [words, why] : cases) {
    EXPECT_THAT(dump_refusal(words), ::testing::StartsWith(why));
  }
  // Data of other classes.
  out_.link(data() + "/train/disc", "few/a");
  out_.link(data() + "/train/ring", "few/b");
  EXPECT_EQ(dump_refusal({"--blend", data() + "=1", "--blend", folder + "/few=1"}),
            "--blend: " + folder + "/few does not go with " + data() +
                ": ConcatSource: source 1 has 2 classes, not 10 classes as source 0");
}

TEST_F(SampleOptions, OfAConfigFileAreNamedWithTheirLine) {
  const std::string file = out_.write("run.toml", "[dump]\nblend = [\"" + data() + "=3\", \"" +
                                                      other() + "=1\"]\n[train]\nlr = 1\n");
  EXPECT_EQ(dump({"--config", file, "--steps", "1"}).size(), 20u);
  const std::string wrong = out_.write("wrong.toml", "data = \"x\"\n\nsubset = \"part=1:0\"\n");
  EXPECT_EQ(dump_refusal({"--config", wrong, "--data", data()}),
            wrong +
                ":3: subset: 'part=1:0': after part= stand two numbers from 0 to 1, the "
                "smaller one first, as in part=0:0.9, with at most 9 decimals");
}

TEST_F(SampleOptions, TrainAndEvalTakeASubset) {
  const std::string photos = data() + "/train";  // no test part
  const ProgramResult result = run_program(
      with(without_data("a", 1), {"--data", photos, "--subset", "part=0:0.9", "--eval-data", photos,
                                  "--eval-subset", "part=0.9:1"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("36 training samples, 4 for evaluation, 10 classes"));
  const UnorderedJson data_of_run = config("a")["data"];
  EXPECT_THAT(data_of_run["subset"], ::testing::StartsWith("36 of 40 samples, ids "));
  EXPECT_EQ(data_of_run["options"], UnorderedJson({{"data", {photos}},
                                                   {"subset", {"part=0:0.9"}},
                                                   {"eval_data", {photos}},
                                                   {"eval_subset", {"part=0.9:1"}}}));
  EXPECT_EQ(receipt("a")["policies"]["subset"], data_of_run["subset"]);

  const Words eval = {STOKER_PROGRAM, "eval",        "--checkpoint", run_folder("a"),
                      "--json",       "--precision", "fp32"};
  const ProgramResult held_out =
      run_program(with(eval, {"--data", photos, "--subset", "part=0.9:1"}));
  ASSERT_EQ(held_out.exit_code, 0) << held_out.err;
  const UnorderedJson found = UnorderedJson::parse(held_out.out);
  EXPECT_EQ(found["samples"], 4);
  char reported[64];
  std::snprintf(reported, sizeof reported, "top-1 %.2f%%", 100 * found["top1"].get<double>());
  EXPECT_THAT(result.out, HasSubstr(reported));

  // Without --eval-data a subset of the test part, if there is one.
  const ProgramResult classes =
      run_program(with(command("b", 1), {"--eval-subset", "classes=disc"}));
  ASSERT_EQ(classes.exit_code, 0) << classes.err;
  EXPECT_THAT(classes.out, HasSubstr("40 training samples, 2 for evaluation"));
  EXPECT_THAT(refusal(with(without_data("c", 1), {"--data", photos, "--eval-subset", "part=0:1"})),
              ::testing::StartsWith("--eval-subset: it needs --eval-data, because nothing is "
                                    "evaluated: " +
                                    photos));
  EXPECT_FALSE(fs::exists(run_folder("c")));
}

// An epoch of an order: a sample counts as often as it comes.
TEST_F(SampleOptions, EvalTakesAnEpochOfAnOrder) {
  ASSERT_EQ(run_program(command("a", 1)).exit_code, 0);
  const Words eval = {STOKER_PROGRAM, "eval",        "--checkpoint", run_folder("a"),
                      "--json",       "--precision", "fp32"};
  const auto loss = [&](const Words& more) {
    const ProgramResult result = run_program(with(eval, more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const UnorderedJson found = UnorderedJson::parse(result.out);
    EXPECT_EQ(found["bad"], 0);
    return std::pair(found["samples"].get<int>(), found["loss"].get<double>());
  };
  // Only one of the 20 samples of the test part comes, 20 times.
  std::string weights;
  for (int i = 0; i < 20; ++i) weights += i == 7 ? "1\n" : "0\n";
  const auto drawn = loss({"--data", data(), "--weights", out_.write("weights", weights)});
  const auto alone = loss({"--data", data(), "--subset", out_.write("seven", "7\n")});
  EXPECT_EQ(drawn.first, 20);
  EXPECT_EQ(alone.first, 1);
  EXPECT_NEAR(drawn.second, alone.second, 1e-6);
  EXPECT_EQ(loss(blend()).first, 30);
  EXPECT_EQ(loss(with(blend(), {"--split", "train"})).first, 60);
  EXPECT_EQ(refusal(with(eval, with(blend(), {"--limit", "3"}))),
            "--limit: --blend says how often each of all samples comes");
  EXPECT_EQ(refusal(with(eval, {"--data", data(), "--weights", "balanced", "--limit", "3"})),
            "--limit: --weights says how often each of all samples comes; --subset takes a part of "
            "them");
}

TEST_F(SampleOptions, ASubsetResumesExactly) {
  expect_exact_resume({"--data", data(), "--subset", "part=0:0.9"}, 18);
}

TEST_F(SampleOptions, WeightsResumeExactly) {
  expect_exact_resume({"--data", data(), "--weights", "balanced"}, 20);
  EXPECT_THAT(config("whole")["data"]["order"], ::testing::StartsWith("class balanced, length 40"));
  EXPECT_EQ(receipt("whole")["policies"]["order"], config("whole")["data"]["order"]);
}

TEST_F(SampleOptions, BlocksResumeExactly) {
  expect_exact_resume({"--data", data(), "--shuffle-blocks", "4x3"}, 20);
  EXPECT_EQ(config("whole")["data"]["order"], "shuffled by blocks of 4, 3 mixed");
  EXPECT_EQ(receipt("whole")["policies"]["order"], config("whole")["data"]["order"]);
  EXPECT_EQ(config("whole")["data"]["options"],
            UnorderedJson({{"data", {data()}}, {"shuffle_blocks", {"4x3"}}}));
}

TEST_F(SampleOptions, ABlendResumesExactlyAndEvaluatesAllTestParts) {
  expect_exact_resume(blend(), 30);
  EXPECT_EQ(config("whole")["data"]["eval_samples"], 30);
  EXPECT_EQ(config("whole")["data"]["options"],
            UnorderedJson({{"blend", {data() + "=3", other() + "=1"}}}));
  // A part without a test part is named.
  const ProgramResult one = run_program(
      with(without_data("one", 1), {"--blend", data() + "=1", "--blend", other() + "/train=1"}));
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("note: not all is evaluated: " + other() + "/train: no folder"));
  EXPECT_THAT(one.out, HasSubstr("60 training samples, 20 for evaluation"));
}

TEST_F(SampleOptions, ARunIsResumedOnlyWithTheSameSamplesAndOrder) {
  const Words short_run = {"--max-steps", "2"};
  const auto begin = [&](const std::string& name, const Words& more) {
    ASSERT_EQ(run_program(with(with(without_data(name, 1), more), short_run)).exit_code, 0);
  };
  const auto resume = [&](const std::string& name, const Words& more) {
    return refusal(with(with(without_data(name, 1), more), {"--resume"}));
  };
  const Words all = {"--data", data()};
  begin("subset", with(all, {"--subset", "part=0:0.9"}));
  const std::string subset = config("subset")["data"]["subset"];
  EXPECT_EQ(resume("subset", all), "--subset: the run in " + run_folder("subset") + " has " +
                                       subset +
                                       ", and with these options it would have all samples; a run "
                                       "is resumed with the same samples");
  EXPECT_THAT(
      resume("subset", with(all, {"--subset", "part=0.1:1"})),
      AllOf(::testing::StartsWith("--subset: the run in " + run_folder("subset") + " has " +
                                  subset + ", and with these options it would have 36 of 40"),
            Not(HasSubstr("would have " + subset))));
  // The same samples in other words, from a file that changes.
  const std::string list = out_.write("list", "");
  std::string ids;
  const auto lists = random_split(40, {0.9, 0.1}, 0);
  for (const SampleId id : lists[0]) ids += std::to_string(id) + "\n";
  out_.write("list", ids + "4\n");
  EXPECT_THAT(resume("subset", with(all, {"--subset", list})), HasSubstr("it would have 37 of 40"));
  out_.write("list", ids);
  const ProgramResult same = run_program(
      with(without_data("subset", 1), {"--data", data(), "--subset", list, "--resume"}));
  EXPECT_EQ(same.exit_code, 0) << same.err;

  begin("plain", all);
  const std::string plain = "--weights: the run in " + run_folder("plain") +
                            " has every sample once per epoch, and with these options it would "
                            "have class balanced, length 40, ";
  EXPECT_THAT(resume("plain", with(all, {"--weights", "balanced"})), ::testing::StartsWith(plain));
  EXPECT_THAT(
      resume("plain", with(all, {"--shuffle-blocks", "16"})),
      ::testing::StartsWith("--shuffle-blocks: the run in " + run_folder("plain") + " has "));
  begin("blend", blend());
  EXPECT_THAT(resume("blend", {"--blend", data() + "=2", "--blend", other() + "=1"}),
              ::testing::StartsWith("--blend: the run in " + run_folder("blend") +
                                    " has blend of 2 sources in 1 pieces, length 60, shares "));
  EXPECT_THAT(resume("blend", all), ::testing::StartsWith("--blend: the run in "));
}

TEST_F(SampleOptions, TrainRefusesWhatItWouldIgnore) {
  const std::vector<std::pair<Words, std::string>> cases = {
      {{}, "--data is required, or --blend in its place"},
      {{"--data", data(), "--weights", "balanced", "--limit-train", "8"},
       "--limit-train: --weights says how often each of all samples comes; --subset takes a part "
       "of them"},
      {{"--data", data(), "--shuffle-blocks", "4", "--limit-train", "8"},
       "--limit-train: --shuffle-blocks is of all samples; --subset takes a part of them"},
      {with(blend(), {"--limit-train", "8"}),
       "--limit-train: --blend says how often each of all samples comes"},
      {with(blend(), {"--eval-subset", "part=0:1"}),
       "--eval-subset: it is of one data set: name it with --eval-data"}};
  for (const auto& [words, why] : cases) {
    EXPECT_EQ(refusal(with(without_data("x", 1), words)), why);
    EXPECT_FALSE(fs::exists(run_folder("x")));
  }
  // Commands that take a whole data set do not know the options.
  for (const std::string name : {"plan", "peek", "check", "index", "pack"}) {
    Words words = {STOKER_PROGRAM, name, "--data", data(), "--subset", "part=0:1"};
    if (name == "plan") words = with(words, {"--gpus", "1", "--rate", "1"});
    if (name == "peek") words = with(words, {"--out", run_folder("x")});
    if (name == "pack") words = with(words, {"--out", run_folder("x"), "--format", "tar"});
    EXPECT_THAT(refusal(words), HasSubstr("--subset")) << name;
  }
}

TEST_F(SampleOptions, AProfiledTrainingHasThem) {
  const auto profile = [&](const Words& more) {
    const Words words = {STOKER_PROGRAM,
                         "profile",
                         "--seconds",
                         "0.5",
                         "--no-trace",
                         "--out",
                         run_folder("profile"),
                         "--",
                         "train",
                         "--model",
                         "airnet-narrow",
                         "--batch",
                         "8",
                         "--micro-batch",
                         "8",
                         "--workers",
                         "1",
                         "--threads",
                         "1"};
    return run_program(with(words, more));
  };
  // Every file that is slow to read is one of the subset.
  const ProgramResult part = profile({"--data", data(), "--subset", "classes=disc,ring"});
  ASSERT_EQ(part.exit_code, 0) << part.err;
  const UnorderedJson found =
      UnorderedJson::parse(read_text(run_folder("profile") + "/profile.json"));
  ASSERT_FALSE(found["slowest_files"].empty());
  for (const UnorderedJson& file : found["slowest_files"]) {
    EXPECT_THAT(file["name"], ::testing::AnyOf(::testing::StartsWith("train/disc/"),
                                               ::testing::StartsWith("train/ring/")));
  }
  EXPECT_EQ(found["checkpoint"]["every_steps"], 1) << "8 samples are one batch";
  // So with an order, in which the samples of one class come.
  const std::string weights =
      out_.write("disc",
                 "arrow 0\nbowtie 0\ncrescent 0\ncross 0\nheart 0\nring 0\nsquare 0\nstar 0\n"
                 "triangle 0\ndisc 1\n");
  ASSERT_EQ(profile({"--data", data(), "--weights", weights}).exit_code, 0);
  const UnorderedJson drawn =
      UnorderedJson::parse(read_text(run_folder("profile") + "/profile.json"));
  ASSERT_FALSE(drawn["slowest_files"].empty());
  for (const UnorderedJson& file : drawn["slowest_files"]) {
    EXPECT_THAT(file["name"], ::testing::StartsWith("train/disc/"));
  }
  const ProgramResult mixed = profile(blend());
  ASSERT_EQ(mixed.exit_code, 0) << mixed.err;
  EXPECT_EQ(UnorderedJson::parse(
                read_text(run_folder("profile") + "/profile.json"))["checkpoint"]["every_steps"],
            7)
      << "60 samples, and what does not fill a batch is dropped";
  const ProgramResult refused = profile(with(blend(), {"--subset", "part=0:1"}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--subset: it is of one data set"));
  EXPECT_EQ(profile({}).exit_code, 2);
}

// So that the data are found again from another folder.
TEST_F(SampleOptions, AreWrittenWithAbsolutePaths) {
  out_.link(data(), "photos");
  out_.write("list", "3\n1\n2\n0\n");
  out_.write("four", "1\n1\n0\n1\n");
  std::string line = "cd '" + out_.path() + "' && exec";
  for (const std::string& word :
       with(without_data("a", 1), {"--data", "photos", "--subset", "list", "--weights", "four",
                                   "--label-from", "", "--max-steps", "1"})) {
    line += " '" + word + "'";
  }
  const ProgramResult result = run_program({"bash", "-c", line});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(config("a")["data"]["options"], UnorderedJson({{"data", {out_.path() + "/photos"}},
                                                           {"subset", {out_.path() + "/list"}},
                                                           {"weights", {out_.path() + "/four"}}}));
}

TEST(ConfigDiff, TheNamesOfDataDecideNothing) {
  const TempFolder folder;
  const auto run = [&](const std::string& name, const std::string& subset) {
    folder.write(name + "/config.json",
                 UnorderedJson({{"data",
                                 {{"subset", subset},
                                  {"order", "blend"},
                                  {"options", {{"data", {"/data/" + name}}, {"subset", {name}}}}}}})
                     .dump());
    return folder.path() + "/" + name;
  };
  const std::string a = run("a", "36 of 40"), b = run("b", "36 of 40"), c = run("c", "37 of 40");
  const ConfigDifference same = config_diff(a, b);
  EXPECT_TRUE(same.same());
  ASSERT_EQ(same.others.size(), 2u);
  EXPECT_EQ(same.others[0].name, "data.options.data");
  const ConfigDifference other = config_diff(a, c);
  ASSERT_EQ(other.deciding.size(), 1u);
  EXPECT_EQ(other.deciding[0].name, "data.subset");
}

TEST_F(SampleOptions, ReceiptDiffNamesTheSample) {
  const std::string photos = out_.path() + "/photos";
  fs::copy(data() + "/train", photos, fs::copy_options::recursive);
  const Words of_photos = {"--data", photos, "--subset", "part=0:0.5"};
  ASSERT_EQ(run_program(with(without_data("a", 1), of_photos)).exit_code, 0);
  // Another picture under one name: the runs differ in this sample alone.
  const auto source = open_source(photos, Split::all);
  const SampleId changed = random_split(40, {0.5, 0.5}, 0)[0][3];
  const std::string name = source->name(changed);
  fs::copy_file(photos + "/" + source->name(changed + 1), photos + "/" + name,
                fs::copy_options::overwrite_existing);
  ASSERT_EQ(run_program(with(without_data("b", 1), of_photos)).exit_code, 0);
  const auto diff = [&](const Words& more) {
    const ProgramResult result = run_stoker(
        with({"receipt", "diff", run_folder("a"), run_folder("b") + "/receipt.json"}, more));
    EXPECT_EQ(result.exit_code, 1) << result.err;
    return result.out;
  };
  EXPECT_THAT(diff({}), HasSubstr(", sample 3 (" + name + ")\n"));
  const UnorderedJson named = UnorderedJson::parse(diff({"--json"}))["pixels"];
  EXPECT_EQ(named["sample"], 3);
  EXPECT_EQ(named["name"], name);
  EXPECT_EQ(named["not_named"], "");

  // A sample that is gone changes the labels, so that the numbers mean others.
  fs::remove(photos + "/" + source->name(0));
  EXPECT_THAT(diff({}), HasSubstr(", sample 3 (no name: the data of " + run_folder("a") +
                                  " are not what they were: there are 20 samples with labels "));
  EXPECT_EQ(UnorderedJson::parse(diff({"--json"}))["pixels"]["name"], "");
  fs::rename(photos, photos + "2");
  EXPECT_THAT(diff({}), HasSubstr(", sample 3 (no name: the data of " + run_folder("a") + ": " +
                                  photos + ": no such file or folder)\n"));
  fs::remove(run_folder("a") + "/config.json");
  EXPECT_THAT(diff({}), HasSubstr(", sample 3 (no name: " + run_folder("a") +
                                  " has no config.json, which names the data)\n"));
}

TEST_F(SampleOptions, ReceiptDiffNamesSamplesOfABlendAndOfALimit) {
  for (const Words& more : {blend(), Words{"--data", data(), "--limit-train", "20"}}) {
    fs::remove_all(run_folder("a"));
    fs::remove_all(run_folder("b"));
    ASSERT_EQ(run_program(with(without_data("a", 1), more)).exit_code, 0);
    ASSERT_EQ(run_program(
                  with(without_data("b", 1),
                       with(more, {"--augment", "resize | random_crop(padding=2, mode=reflect)"})))
                  .exit_code,
              0);
    const ProgramResult result =
        run_stoker({"receipt", "diff", run_folder("a"), run_folder("b"), "--json"});
    const UnorderedJson pixels = UnorderedJson::parse(result.out)["pixels"];
    const bool blended = more[0] == "--blend";
    const std::string root = blended ? fs::path(data()).parent_path().string() : data();
    EXPECT_TRUE(fs::exists(root + "/" + pixels["name"].get<std::string>())) << pixels;
    if (blended) {
      for (const UnorderedJson& row : dump(blend())) {
        if (row["sample_id"] != pixels["sample"]) continue;
        EXPECT_EQ(row["name"], pixels["name"]);
      }
    } else {
      const auto source = open_source(data(), Split::train);
      EXPECT_EQ(pixels["name"], source->name(2 * pixels["sample"].get<int64_t>()));
    }
  }
  // Runs on different samples have no common names.
  ASSERT_EQ(run_program(with(command("c", 1), {"--subset", "part=0:0.5"})).exit_code, 0);
  const ProgramResult other = run_stoker({"receipt", "diff", run_folder("c"), run_folder("b")});
  EXPECT_THAT(other.out, HasSubstr(" (no name: the runs were fed from different samples)\n"));
}

}  // namespace
}  // namespace stoker
