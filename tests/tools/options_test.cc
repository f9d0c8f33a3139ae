// Invalid options are refused with one line that names them as they were written, on the command
// line or in a file, before anything is written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>

#include "pipeline/augment.h"
#include "tests/tools/train_runs.h"
#include "tools/option/config_file.h"
#include "tools/option/parser.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

class Options : public TrainRuns {
 protected:
  // Returns the one line of `command`, which is refused and makes no `made`.
  static std::string refusal(const Words& command, const std::string& made) {
    const ProgramResult result = run_program(command);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(count_lines(result.err), 1) << result.err;
    EXPECT_FALSE(std::filesystem::exists(made)) << result.err;
    const size_t colon = result.err.find(": ");
    return colon == std::string::npos ? result.err : result.err.substr(colon + 2);
  }
  std::string train_refusal(const Words& more) const {
    Words words = command("x", 1);
    for (const std::string& word : more) {  // given once
      const auto old = std::find(words.begin(), words.end(), word);
      if (word.starts_with("--") && old != words.end()) words.erase(old, old + 2);
    }
    return refusal(with(words, more), run_folder("x"));
  }
  std::string file_refusal(const std::string& text) const {
    const std::string path = out_.write("run.toml", text);
    const std::string line = refusal(
        {STOKER_PROGRAM, "train", "--data", data(), "--out", run_folder("x"), "--config", path},
        run_folder("x"));
    EXPECT_THAT(line, StartsWith(path + ":"));
    return line.substr(std::min(line.size(), path.size() + 1));
  }
};

TEST_F(Options, NumbersAreWhatTheyLookLikeOrRefused) {
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"--seed", "-1"}, "--seed: -1 is negative"},
      {{"--seed", "18446744073709551616"}, "--seed: 18446744073709551616 is out of range"},
      {{"--seed", "010"}, "--seed: '010' is not a whole number"},
      {{"--seed", "0x10"}, "--seed: '0x10' is not a whole number"},
      {{"--max-steps", "9223372036854775808"}, "--max-steps: 9223372036854775808 is out of range"},
      {{"--lr", "inf"}, "--lr: 'inf' is not a finite number"},
      {{"--lr", "1e999"}, "--lr: '1e999' is not a finite number"},
      {{"--max-bad", "nan"}, "--max-bad: 'nan' is not a finite number"},
      {{"--epochs", "nan"}, "--epochs: 'nan' is not a finite number"},
      {{"--warmup-epochs", "1e300"}, "--warmup-epochs is 1e+300"},
      {{"--batch", "2147483647"}, "--batch: '2147483647' is neither a number of samples"},
      {{"--ring-depth", "0"}, "--ring-depth: Value 0 not in range 1 to 65536"},
      {{"--slots", "4"}, "--slots: Value 4 not in range -1 to 3"},
      {{"--size", "100000"}, "--size: Value 100000 not in range 1 to 16384"}};
  for (const auto& [words, why] : cases) {
    EXPECT_THAT(train_refusal({words[0] + "=" + words[1]}), StartsWith(why));
  }
}

// The rate falls at the milestones, or the schedule is refused.
TEST_F(Options, AStepScheduleHasMilestones) {
  const Words step = {"--schedule", "step"};
  EXPECT_THAT(train_refusal(step), StartsWith("--milestones are none, so that the rate would"));
  const Words few = with(step, {"--epochs", "4"});
  for (const std::string wrong : {"2,1", "2,2", "4", "0,1", "1,5"}) {
    EXPECT_THAT(train_refusal(with(few, {"--milestones", wrong})),
                StartsWith("--milestones: " + wrong + " must be epochs that ascend, within the 4"));
  }
  EXPECT_THAT(train_refusal(with(few, {"--milestones", "1", "--gamma", "2"})),
              StartsWith("--gamma is 2, but must be in (0, 1]"));
  const std::string file = out_.write("step.toml", "milestones = [1, 3]\ngamma = 0.5\n");
  Words words = with(command("x", 4), {"--schedule", "step", "--lr", "0.5", "--lr-ref-batch", "0",
                                       "--log-interval", "10", "--config", file});
  const ProgramResult result = run_program(words);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("learning rate 0.5, x 0.5 at 25 % 75 %"));
  const std::string metrics = read_text(run_folder("x") + "/metrics.jsonl");
  std::vector<std::string> rates;  // of the last step of each epoch
  for (size_t at = 0; (at = metrics.find("\"learning_rate\": ", at)) != std::string::npos; ++at) {
    rates.push_back(metrics.substr(at + 17, metrics.find(',', at) - at - 17));
  }
  EXPECT_EQ(rates, (Words{"0.5", "0.25", "0.25", "0.125"}));
}

// The batch is that of all devices, and the rate goes with it.
TEST_F(Options, ABatchMayBeGivenPerDevice) {
  const auto words = [&](const std::string& devices, const std::string& samples) {
    return Words{STOKER_PROGRAM,
                 "train",
                 "--data",
                 data(),
                 "--out",
                 run_folder("each"),
                 "--model",
                 "resnet20",
                 "--size",
                 "16",
                 "--micro-batch",
                 "1",
                 "--devices",
                 devices,
                 "--batch-per-device",
                 samples,
                 "--lr",
                 "0.5",
                 "--lr-ref-batch",
                 "2",
                 "--precision",
                 "fp32"};
  };
  EXPECT_THAT(
      refusal(words("cpu:2", "16777216"), run_folder("each")),
      StartsWith("--batch-per-device: 16777216 samples on 2 devices are more than 16777216"));
  const ProgramResult result = run_program(with(words("cpu:2", "4"), {"--max-steps", "1"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("global batch 8 "));
  EXPECT_THAT(result.out, HasSubstr("learning rate 2 (0.5 x 8 / 2)"));
  EXPECT_THAT(result.out, HasSubstr("note: the rate is 4 times that of a batch of 2"));
  // On other devices the batch is another one, and the run goes on at the same sample.
  const ProgramResult resumed =
      run_program(with(words("cpu:1", "4"), {"--resume", "--max-steps", "2"}));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("goes on at sample 8 of epoch 0 with a global batch of 4, "
                                     "before it was 8: learning rate 2 -> 1"));
}

// An error of the library names the option, not the field.
TEST_F(Options, AreNamedAsTheyWereWritten) {
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"--lr", "-1"}, "--lr is -1, but must be >= 0"},
      {{"--ema", "1"}, "--ema is 1, but must be in [0, 1)"},
      {{"--optimizer", "lars"},
       "--optimizer: lars needs --lr, because the model's rate is for sgd"},
      {{"--optimizer", "adam", "--betas", "0.9,1"}, "--betas is 1, but must be in [0, 1)"},
      {{"--optimizer", "adam", "--betas", "0.9"}, "--betas: 0.9 are 1 numbers, not 2"},
      {{"--optimizer", "adamw", "--epsilon", "0"}, "--epsilon is 0, but must be > 0"},
      {{"--optimizer", "lars", "--lr", "1", "--trust", "0"}, "--trust is 0, but must be > 0"},
      {{"--batch", "8", "--batch-per-device", "4"},
       "--batch-per-device: 4 samples per device or --batch 8, not both"},
      {{"--devices", "cpu:2", "--accumulate", "3"},
       "--batch: the global batch of 4 does not divide over 2 devices in 3 parts (--accumulate)"},
      {{"--warmup-steps", "5", "--warmup-epochs", "1"},
       "--warmup-steps: 5 steps or --warmup-epochs 1, not both"},
      {{"--schedule", "triangle", "--warmup-steps", "5"},
       "--warmup-steps is 5, but must be 0 with triangle"},
      {{"--warmup-start", "2"}, "--warmup-start is 2, but must be in [0, 1]"},
      {{"--clip-norm", "-1"}, "--clip-norm is -1, but must be >= 0"},
      {{"--augment", "resize | random_crop(padding=999, mode=reflect)"},
       "--augment: random_crop: 999 pixels of padding with mode reflect on an image of 32 x 32"},
      {{"--augment", "random_resized_crop(scale=(0.9, 0.1))"},
       "--augment: random_resized_crop: scale is (0.9, 0.1), must be (least, most)"},
      {{"--augment", "resize(16) | flip"},
       "--augment: 'resize(size=16) | flip' gives images of different"},
      {{"--augment", "resize((16, 16)) | flip", "--size", "24"},
       "--augment: rows of 24x24 pixels, but 'resize(size=(16, 16)) | flip' ends with images of "
       "16x16"},
      {{"--augment", "resize | squint"}, "--augment: there is no stage squint; there are "},
      {{"--augment", "resize | flip("}, "--augment: column 15 of 'resize | flip(': expected"},
      {{"--seek-index", "/no/such"}, "--seek-index: /no/such: no such file"},
      {{"--feed", "resident", "--resident-mib", "0.001"}, "--resident-mib: a budget of 1048 bytes"},
      {{"--devices", "cpu:3"}, "--batch: the global batch of 4 does not divide over 3 devices"},
      {{"--batch", "512", "--last-batch", "drop"},
       "--batch: a global batch of 512 samples is more than the 40 samples, and --last-batch drop "
       "leaves out what does not fill one: take at most 40 samples, or --last-batch pad"}};
  for (const auto& [words, why] : cases) EXPECT_THAT(train_refusal(words), StartsWith(why));
}

TEST_F(Options, ThatWouldBeIgnoredAreRefused) {
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"--gamma", "0.5"}, "--gamma: it needs --schedule step"},
      {{"--betas", "0.9,0.99"}, "--betas: the optimizer is sgd, which has no betas but --momentum"},
      {{"--epsilon", "1e-6"}, "--epsilon: the optimizer is sgd, which has no epsilon"},
      {{"--trust", "0.01"}, "--trust: the optimizer is sgd, which has no trust ratio"},
      {{"--optimizer", "adam", "--momentum", "0.9"},
       "--momentum: the optimizer is adam, which has no momentum but --betas"},
      {{"--optimizer", "adam", "--nesterov"},
       "--nesterov: the optimizer is adam, which has no Nesterov momentum"},
      {{"--optimizer", "adamw", "--trust", "0.01"},
       "--trust: the optimizer is adamw, which has no"},
      {{"--optimizer", "lars", "--lr", "1", "--betas", "0.9,0.9"},
       "--betas: the optimizer is lars, which has no betas"},
      {{"--milestones", "1,2"}, "--milestones: it needs --schedule step"},
      {{"--grad-wire", "bf16"}, "--grad-wire is bf16, but a single replica sends no gradients"},
      {{"--grad-wire", "int8", "--reduce", "none"},
       "--grad-wire is int8, but with reduce none no gradients travel"},
      {{"--sync-batch-norm", "--devices", "cpu:2", "--reduce", "independent"},
       "--sync-batch-norm is on, but with reduce independent replicas exchange nothing"},
      {{"--sync-batch-norm", "--model", "alexnet", "--size", "64", "--devices", "cpu:2"},
       "--sync-batch-norm is on, but alexnet has no batch norms"},
      {{"--bucket-mib", "5"}, "--bucket-mib: it is for gradients on GPUs"},
      {{"--resident-mib", "5"}, "--resident-mib: it needs --feed resident"},
      {{"--feed", "synthetic", "--resume"}, "--resume: runs that measure"},
      {{"--workers", "0", "--io-threads", "3"}, "--io-threads: with --workers 0"},
      {{"--on-bad", "fail", "--max-bad", "3"}, "--max-bad: with --on-bad fail"},
      {{"--micro-batch", "3"}, "--micro-batch: the 4 samples of a device do not divide"},
      {{"--devices", "cuda:0", "--micro-batch", "2"}, "--micro-batch: batch norm sees all samples"},
      {{"--devices", "cuda:0", "--micro-batch", "4", "--threads", "2"}, "--threads: nothing"},
      {{"--batch", "34", "--devices", "cpu:2", "--micro-batch", "8"},
       "--micro-batch: the 17 samples of a device do not divide into micro-batches of 8"}};
  for (const auto& [words, why] : cases) EXPECT_THAT(train_refusal(words), StartsWith(why));
}

TEST_F(Options, OfOtherSubcommandsAreCheckedBeforeAnythingIsWritten) {
  const std::string made = run_folder("made");
  const Words dump = {STOKER_PROGRAM, "dump", "--data", data(), "--out", made};
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"--rank", "5", "--world", "2"}, "--rank is 5 of a world of 2"},
      {{"--world", "0"}, "--world is 0, must be 1 to 1048576"},
      {{"--batch", "64", "--last-batch", "drop"}, "--batch: a global batch of 64 samples is more"},
      {{"--augment", "flip", "--view", "eval"}, "--view excludes --augment"},
      {{"--augment", "resize(16) | flip"},
       "--augment: 'resize(size=16) | flip' gives images of different"},
      {{"--seek-index", "/no/such"}, "--seek-index: /no/such: no such file"}};
  for (const auto& [words, why] : cases) {
    EXPECT_THAT(refusal(with(dump, words), made), StartsWith(why));
  }
  EXPECT_THAT(refusal({STOKER_PROGRAM, "make-shapes", "--out", made, "--seed=-1"}, made),
              StartsWith("--seed: -1 is negative"));
  EXPECT_THAT(refusal({STOKER_PROGRAM, "plan", "--gpus", "8", "--rate", "3", "--feed", "x.json",
                       "--data", data()},
                      made),
              StartsWith("--data: with --feed nothing is measured"));
}

TEST_F(Options, ThatHaveANewNameAreRefusedWithIt) {
  EXPECT_THAT(train_refusal({"--comm-dtype", "bf16"}),
              StartsWith("--comm-dtype is now --grad-wire"));
  EXPECT_THAT(train_refusal({"--reduce", "host"}),
              StartsWith("--reduce: host is now all-reduce:host"));
  EXPECT_THAT(train_refusal({"--rows-per-shard=2"}),
              StartsWith("--rows-per-shard is now --micro-batch"));
  const std::string made = out_.path() + "/bench";
  EXPECT_THAT(refusal({STOKER_PROGRAM, "bench", "depth", "--rows", "16", "--out", made}, made),
              StartsWith("--rows is now --batch"));
  EXPECT_THAT(file_refusal("seed = 1\nrows-per-shard = 2\n"),
              StartsWith("2: rows-per-shard is now micro-batch"));
}

// The options that one list of stages has replaced.
TEST_F(Options, OfOneStageAreRefusedWithAListThatHasIt) {
  for (const std::string name :
       {"crop", "flip", "filter", "scale-min", "scale-max", "ratio-min", "ratio-max",
        "resize-short", "pad", "pad-mode", "cutout", "brightness", "contrast", "saturation", "hue",
        "mixup", "cutmix"}) {
    const RenamedOption* const option = find_renamed(name);
    ASSERT_NE(option, nullptr) << name;
    EXPECT_THAT(train_refusal({"--" + name, "1"}),
                StartsWith("--" + name + " is now --augment \"" + option->value + "\""));
    EXPECT_THAT(file_refusal("\n" + name + " = 1\n"),
                StartsWith("2: " + name + " is now augment = '" + option->value + "'"));
    EXPECT_NO_THROW(AugmentSpec(option->value, {32, 32}).validate_for(std::nullopt)) << name;
  }
  EXPECT_EQ(find_renamed("augment"), nullptr);
}

TEST_F(Options, OfStagesComeFromAFileToo) {
  EXPECT_THAT(file_refusal("seed = 1\naugment = 'resize(short=3)'\n"),
              StartsWith("2: augment: resize has no short; it has size, filter, max_size"));
  const std::string file =
      out_.write("a.toml", "augment = \"random_resized_crop(scale=(0.35, 1)) | flip\"\n");
  ASSERT_EQ(run_program(with(command("x", 1), {"--config", file})).exit_code, 0);
  EXPECT_THAT(read_text(run_folder("x") + "/config.json"),
              HasSubstr("\"train\": \"random_resized_crop(scale=(0.35, 1)) | flip\""));
}

TEST_F(Options, ExplainTheAugmentationOfATrainingThatIsNotBegun) {
  const ProgramResult result = run_program(with(
      command("x", 1), {"--explain-augment", "--augment", "random_resized_crop | invert | flip"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            "samples of 32 x 32 pixels (height, width)\n"
            "random_resized_crop: done by the decoder while it decodes\n"
            "invert: a pass of its own\n"
            "flip: a pass of its own, or nothing\n");
  EXPECT_FALSE(std::filesystem::exists(run_folder("x")));
  const std::string made = out_.path() + "/profile";
  EXPECT_THAT(refusal({STOKER_PROGRAM, "profile", "--out", made, "--", "train", "--data", data(),
                       "--explain-augment"},
                      made + "/profile.json"),
              StartsWith("--explain-augment: see stoker train"));
}

// The list says how large the images are, unless --size does.
TEST_F(Options, AListMaySayTheSizeOfAllImages) {
  const Words words =
      with(command("x", 1), {"--model", "resnet20", "--augment", "random_resized_crop(24) | flip"});
  const ProgramResult result = run_program(words);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(" at 24x24, "));
}

TEST_F(Options, ThatMeasureStandAtTheEndOfTheHelp) {
  const std::string help = run_program({STOKER_PROGRAM, "train", "--help"}).out;
  const size_t group = help.find("\nMeasuring (");
  ASSERT_NE(group, std::string::npos);
  for (const std::string name : {"--feed ", "--resident-mib "}) {
    EXPECT_GT(help.find("\n  " + name), group) << name;
  }
  for (const std::string name : {"--devices ", "--reduce ", "--grad-wire ", "--sync-batch-norm ",
                                 "--epochs ", "--augment "}) {
    EXPECT_LT(help.find("\n  " + name), group) << name;
  }
}

TEST_F(Options, SayTheirRangeInTheHelp) {
  const std::string help = run_program({STOKER_PROGRAM, "train", "--help"}).out;
  const std::string words = std::regex_replace(help, std::regex("\\s+"), " ");
  EXPECT_THAT(words, HasSubstr("for each device (default: 4; 1 to 65536)"));
  EXPECT_THAT(words, HasSubstr("end of an epoch (default: 0; 0 or more)"));
}

TEST_F(Options, OfAFileAreNamedWithFileAndLine) {
  EXPECT_THAT(file_refusal("batch = 4\nseed = -1\n"), StartsWith("2: seed: -1 is negative"));
  EXPECT_THAT(file_refusal("\nring-depth = 0\n"), StartsWith("2: ring-depth: Value 0 not in"));
  EXPECT_THAT(file_refusal("[train]\nlr = -1\n"), StartsWith("2: lr is -1, but must be"));
  EXPECT_THAT(file_refusal("augment = \"resize | random_crop(padding=99, mode=reflect)\"\n"),
              StartsWith("1: augment: random_crop: 99 pixels of padding"));
  EXPECT_THAT(file_refusal("last-batch = 'drop'\nbatch = 512"),
              StartsWith("2: batch: a global batch of 512 samples is more than the 40 samples, and "
                         "last-batch drop"));
}

TEST_F(Options, OfAFileAreReadStrictly) {
  EXPECT_THAT(file_refusal("seed = [1, 2]\n"), StartsWith("1: seed takes one value, not a list"));
  EXPECT_THAT(file_refusal("seed = 1\nbatch = 4\nseed = 2\n"),
              StartsWith("3: seed is there twice, first in line 1"));
  EXPECT_THAT(file_refusal("[train]\n[eval]\n[train]\n"), StartsWith("3: this section is there"));
  EXPECT_THAT(file_refusal("[train\n"), StartsWith("1: the section's name does not end with ]"));
  EXPECT_THAT(file_refusal("[trian]\n"), StartsWith("1: there is no subcommand 'trian'"));
  EXPECT_THAT(file_refusal("[bench.fed]\n"), StartsWith("1: there is no subcommand 'bench fed'"));
  EXPECT_THAT(file_refusal("trian.seed = 1\n"), StartsWith("1: there is no subcommand 'trian'"));
  EXPECT_THAT(file_refusal("resume = 1\n"), StartsWith("1: resume is true or false"));
  EXPECT_THAT(file_refusal("batch = true\n"), StartsWith("1: batch takes a value, not true"));
  EXPECT_THAT(file_refusal("sedd = 1\n"), StartsWith("1: unknown key sedd"));
}

// The command line takes precedence over the section, the section over the top.
TEST_F(Options, OfAFileGiveWay) {
  const std::string path = out_.write(
      "run.toml", "lr = -7 # of all\nring-depth = 0\n[train]\nlr = -8\n[eval]\nlr = -9\n");
  const std::string line =
      refusal(with(command("x", 1), {"--config", path, "--ring-depth", "3"}), run_folder("x"));
  EXPECT_THAT(line, StartsWith(path + ":4: lr is -8"));
  const std::string own = refusal(
      with(command("x", 1), {"--config", path, "--ring-depth", "3", "--lr=-6"}), run_folder("x"));
  EXPECT_THAT(own, StartsWith("--lr is -6"));
}

TEST(ConfigFile, ReadsThePartOfTomlThatOptionsNeed) {
  std::istringstream text(
      "# a comment\n"
      "name = \"a \\\"b\\\" # c\"  # and one\r\n"
      "path = 'C:\\data'\n"
      "[bench.feed]\n"
      "n = -1.5e3\n"
      "quick = true\n"
      "models = [ \"a\", \"b\" ]\n"
      "'odd key' = 0\n");
  const ConfigText config = read_config(text, "f");
  ASSERT_EQ(config.entries.size(), 6u);
  EXPECT_EQ(config.entries[0].values, Words{"a \"b\" # c"});
  EXPECT_EQ(config.entries[1].values, Words{"C:\\data"});
  EXPECT_EQ(config.entries[1].section, Words{});
  EXPECT_EQ(config.entries[2].section, (Words{"bench", "feed"}));
  EXPECT_EQ(config.entries[2].kind, ConfigEntry::Kind::number);
  EXPECT_EQ(config.entries[3].kind, ConfigEntry::Kind::boolean);
  EXPECT_EQ(config.entries[4].values, (Words{"a", "b"}));
  EXPECT_TRUE(config.entries[4].is_list);
  EXPECT_EQ(config.entries[5].key, "odd key");
  EXPECT_EQ(config.entries[5].line, 8);
}

TEST(ConfigFile, RefusesTheRestWithTheLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a", "f:1: no = follows a"},
      {"a = ", "f:1: a value is missing"},
      {"a = b", "f:1: 'b' is no number and not true or false; text stands in quotes: \"b\""},
      {"a = 1 2", "f:1: '2' follows the value of a"},
      {"a = \"x", "f:1: the text does not end with \" on its line"},
      {"a = \"\\q\"", "f:1: '\\q' is none of"},
      {"a = [1,\n2]", "f:1: the list does not end with ] on its line"},
      {"a = [1 2]", "f:1: no comma separates the list's values"},
      {"a = [1, true]", "f:1: a list of different kinds"},
      {"= 1", "f:1: the key is missing before '= 1'"},
      {"[[a]]", "f:1: [[...]] begins a list of tables"},
      {"[a] b", "f:1: 'b' follows the section's name"},
      {"[]", "f:1: the section's name is missing"},
      {"\na.b = 1\n[a]\nb = 1\n", "f:4: b is there twice, first in line 2"}};
  for (const auto& [text, why] : cases) {
    std::istringstream input(text);
    try {
      read_config(input, "f");
      ADD_FAILURE() << text;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), StartsWith(why));
    }
  }
}

TEST(ConfigFile, MayBeginWithTheMarkOfUtf8) {
  std::istringstream text("\xef\xbb\xbfsize = 3\n");
  const ConfigText config = read_config(text, "x.toml");
  ASSERT_EQ(config.entries.size(), 1u);
  EXPECT_EQ(config.entries[0].key, "size");
}

}  // namespace
}  // namespace stoker
