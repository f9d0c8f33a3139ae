// stoker train and eval as a user runs them: results on disk, interruption and resume, and one
// clear line for what cannot work. (Killed runs: train_kill_test.cc.)

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/tools/train_runs.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TrainCommand : public TrainRuns {
 protected:
  // Ends a run of 12 epochs with `signal` after its first checkpoint, then resumes it.
  ProgramResult stop_and_resume(const std::string& name, int signal) {
    const auto words = with(command(name, 12), {"--checkpoint-steps", "7"});
    RunningProgram program(words);
    EXPECT_TRUE(program.wait_for_file(
        run_folder(name) + "/checkpoints/step_00000007/model.safetensors", 1, 60));
    program.send(signal);
    const ProgramResult stopped = program.wait();
    EXPECT_EQ(weights(name, 120), "") << "the run ended before the signal came";
    const ProgramResult resumed = run_program(with(words, {"--resume"}));
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    return stopped;
  }
};

TEST_F(TrainCommand, LeavesResultsThatEvalReads) {
  const ProgramResult result = run_program(command("a", 2));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* word : {"top-1", "images/s ±", "feed wait", "checkpoint", "step_00000020",
                           "MiB were expected; the program and its data have"}) {
    EXPECT_THAT(result.out, HasSubstr(word));
  }
  EXPECT_EQ(count_metrics(run_folder("a"), "epoch"), 2);
  EXPECT_GT(count_lines(read_text(run_folder("a") + "/metrics.csv")), 2);
  EXPECT_TRUE(nlohmann::json::parse(read_text(run_folder("a") + "/config.json")).is_object());

  const ProgramResult eval = run_stoker(
      {"eval", "--checkpoint", run_folder("a"), "--data", data(), "--json", "--precision", "fp32"});
  ASSERT_EQ(eval.exit_code, 0) << eval.err;
  const auto json = nlohmann::json::parse(eval.out);
  EXPECT_EQ(json["samples"], 20);
  EXPECT_LE(json["top1"], json["top5"]);
  char reported[64];
  std::snprintf(reported, sizeof reported, "top-1 %.2f%%", 100 * json["top1"].get<double>());
  EXPECT_THAT(result.out, HasSubstr(reported));
}

TEST_F(TrainCommand, StartsWithOneScreen) {
  const ProgramResult brief = run_program(with(command("brief", 1), {"--log-interval", "2"}));
  ASSERT_EQ(brief.exit_code, 0) << brief.err;
  EXPECT_THAT(brief.out, HasSubstr("\nmemory: "));
  EXPECT_THAT(brief.out, Not(HasSubstr("memory, engine: ")));
  // From the second report on; it stands there once.
  const size_t expected = brief.out.find("\nexpected: ");
  ASSERT_NE(expected, std::string::npos) << brief.out;
  EXPECT_THAT(brief.out.substr(expected), HasSubstr("per epoch"));
  EXPECT_EQ(brief.out.find("\nexpected: ", expected + 1), std::string::npos);
  const ProgramResult all = run_program(with(command("all", 1), {"--verbose", "--max-steps", "1"}));
  ASSERT_EQ(all.exit_code, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("\nmemory: "));
  EXPECT_THAT(all.out, HasSubstr("memory, engine: "));
}

TEST_F(TrainCommand, SynchronisesBatchNorms) {
  const std::vector<std::string> replicas = {"--devices", "cpu:2", "--threads", "2"};
  const auto words = with(with(command("on", 1), replicas), {"--sync-batch-norm"});
  const ProgramResult result = run_program(words);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("batch norm: synchronised, over 4 samples: a micro-batch of "
                                    "each of 2 replicas; a replica gives "));
  ASSERT_EQ(run_program(with(command("off", 1), replicas)).exit_code, 0);
  EXPECT_TRUE(weights("on", 10) != weights("off", 10)) << "the option has changed nothing";
  const ProgramResult without = run_program(with(with(command("on", 2), replicas), {"--resume"}));
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_EQ(count_lines(without.err), 1);
  EXPECT_THAT(without.err, HasSubstr("this run has another sync_batch_norm: on -> off"));
}

TEST_F(TrainCommand, IndependentReplicasAreModelsOfTheirOwn) {
  const auto words =
      with(command("two", 2), {"--devices", "cpu:2", "--reduce", "independent", "--threads", "2"});
  const ProgramResult result = run_program(words);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string folder = run_folder("two");
  EXPECT_THAT(result.out, HasSubstr("exchange: independent, 2 replicas train a model each"));
  EXPECT_THAT(result.out, HasSubstr("top-1 of 2 replicas: mean "));
  std::string sums[2];
  for (const int replica : {0, 1}) {
    const std::string own = folder + "/replica_" + std::to_string(replica);
    const ProgramResult eval = run_stoker(
        {"eval", "--checkpoint", own, "--data", data(), "--json", "--precision", "fp32"});
    ASSERT_EQ(eval.exit_code, 0) << eval.err;
    const auto json = nlohmann::json::parse(eval.out);
    EXPECT_EQ(json["samples"], 20);
    char reported[64];
    std::snprintf(reported, sizeof reported, ", top-1 %.2f%%, top-5 %.2f%%; ",
                  100 * json["top1"].get<double>(), 100 * json["top5"].get<double>());
    EXPECT_THAT(result.out, HasSubstr(reported + own + "/checkpoints/step_00000020\n"));
    const ProgramResult exported =
        run_stoker({"export", "--checkpoint", own, "--onnx", own + ".onnx"});
    EXPECT_EQ(exported.exit_code, 0) << exported.err;
    EXPECT_FALSE(read_text(own + ".onnx").empty());
    sums[replica] = read_text(own + "/checkpoints/step_00000020/model.safetensors");
  }
  EXPECT_TRUE(sums[0] != sums[1]) << "both learned the same";
  const ProgramResult none = run_stoker({"eval", "--checkpoint", folder, "--data", data()});
  EXPECT_NE(none.exit_code, 0);
  EXPECT_THAT(none.err, HasSubstr(folder + " is a run of 2 independent replicas"));

  const ProgramResult same = run_stoker({"receipt", "diff", folder, folder});
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  EXPECT_THAT(same.out, HasSubstr("weights        same in step 20, "));

  // It is not begun again, and goes on with as many replicas only.
  EXPECT_EQ(run_program(words).exit_code, 2);
  const auto refused = [&](const std::vector<std::string>& more, const std::string& why) {
    const ProgramResult other = run_program(with(words, more));
    EXPECT_EQ(other.exit_code, 2);
    EXPECT_THAT(other.err, HasSubstr(why));
    EXPECT_EQ(count_lines(other.err), 1);
  };
  refused({"--resume", "--devices", "cpu:4"},
          "2 independent replicas, and this run has 4 independent replicas");
  refused({"--resume", "--reduce", "auto"}, "this run has replicas that train one model");
  refused({"--resume", "--grad-wire", "int8"}, "with reduce independent no gradients travel");
  const ProgramResult more = run_program(with(words, {"--resume", "--epochs", "3"}));
  EXPECT_EQ(more.exit_code, 0) << more.err;
  EXPECT_EQ(count_metrics(folder, "replica"), 6);
}

// Lists the pictures of a part of the data, each with two marks that follow from its class.
std::string write_marks(const std::string& part, const std::string& path) {
  std::vector<std::string> classes;
  for (const auto& entry : std::filesystem::directory_iterator(part)) {
    classes.push_back(entry.path().string());
  }
  std::sort(classes.begin(), classes.end());
  std::ofstream list(path);
  for (size_t c = 0; c < classes.size(); ++c) {
    const nlohmann::json marks = {(c + 1) & 1, (c + 1) >> 1 & 1};
    for (const auto& entry : std::filesystem::directory_iterator(classes[c])) {
      list << nlohmann::json{{"path", entry.path().string()}, {"tags", marks}, {"keypoints", marks}}
                  .dump()
           << '\n';
    }
  }
  return path;
}

TEST_F(TrainCommand, LearnsSeveralLabelsOfASample) {
  const std::string train = write_marks(data() + "/train", out_.path() + "/train.jsonl");
  const std::string test = write_marks(data() + "/test", out_.path() + "/test.jsonl");
  const std::vector<std::string> fields = {"--label-from", "none", "--target-from", "tags:float32"};
  auto words = with(with(command("tags", 2), fields), {"--eval-data", test});
  std::replace(words.begin(), words.end(), data(), train);
  const ProgramResult result = run_program(words);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("data: 40 training samples, 20 for evaluation, 2 classes"));
  const auto eval = [&](const std::vector<std::string>& more) {
    return run_stoker(with({"eval", "--checkpoint", run_folder("tags"), "--data", test, "--json",
                            "--precision", "fp32"},
                           more));
  };
  const ProgramResult good = eval(fields);
  ASSERT_EQ(good.exit_code, 0) << good.err;
  char reported[64];
  std::snprintf(reported, sizeof reported, "top-1 %.2f%%",
                100 * nlohmann::json::parse(good.out)["top1"].get<double>());
  EXPECT_THAT(result.out, HasSubstr(reported));
  EXPECT_THAT(eval({"--label-from", "none"}).err, HasSubstr("the model knows other classes"));
  const ProgramResult exported =
      run_stoker({"export", "--checkpoint", run_folder("tags"), "--onnx", run_folder("o.onnx")});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_THAT(read_text(run_folder("o.onnx")), HasSubstr("tags[1]"));

  // Places in the picture would have to move with its pixels.
  const char* const unmoved = "seems to say where something is in the picture";
  EXPECT_THAT(result.out, Not(HasSubstr(unmoved)));
  auto places =
      with(command("places", 1), {"--label-from", "none", "--target-from", "keypoints:float32"});
  std::replace(places.begin(), places.end(), data(), train);
  EXPECT_THAT(run_program(places).out, HasSubstr(unmoved));

  // Whole numbers are not what a model learns, and a folder has no such field.
  auto refused = with(command("other", 1), {"--label-from", "none", "--target-from", "tags"});
  std::replace(refused.begin(), refused.end(), data(), train);
  ProgramResult other = run_program(refused);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("the samples have a target, 'tags': int64 (2); models learn"));
  other = run_program(with(command("other", 1), {"--target-from", "tags:float32"}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_EQ(count_lines(other.err), 1) << other.err;
  EXPECT_FALSE(std::filesystem::exists(run_folder("other")));
}

TEST_F(TrainCommand, FoldersMayHaveNamesThatAreNoText) {
  const std::string odd = run_folder("odd\xff");
  std::filesystem::copy(data(), odd, std::filesystem::copy_options::recursive);
  auto words = command("plain", 1);
  std::replace(words.begin(), words.end(), data(), odd);
  const ProgramResult result = run_program(words);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string folder = run_folder("plain");
  EXPECT_THAT(read_text(folder + "/config.json"), HasSubstr("odd\\\\xff"));
  EXPECT_THAT(read_text(folder + "/receipt.json"), HasSubstr("odd\\\\xff"));
}

// A class folder may have any bytes as its name; what names it is text.
TEST_F(TrainCommand, ClassesMayHaveNamesThatAreNoText) {
  const std::string odd = run_folder("photos"), name = "caf\xe9", shown = "caf\\xe9";
  std::filesystem::copy(data(), odd, std::filesystem::copy_options::recursive);
  for (const std::string part : {"/train/", "/test/"}) {
    std::filesystem::rename(odd + part + "arrow", odd + part + name);
  }
  auto words = command("run", 1);
  std::replace(words.begin(), words.end(), data(), odd);
  ASSERT_EQ(run_program(words).exit_code, 0);
  const std::string folder = run_folder("run");
  EXPECT_EQ(nlohmann::json::parse(read_text(folder + "/config.json"))["data"]["classes"][1], shown);
  EXPECT_EQ(nlohmann::json::parse(
                read_text(folder + "/checkpoints/step_00000010/trainer.json"))["class_names"][1],
            shown);
  // Everything else that names classes or samples.
  for (const std::vector<std::string>& other : std::vector<std::vector<std::string>>{
           {"eval", "--checkpoint", folder, "--data", odd, "--json"},
           {"eval", "--checkpoint", folder, "--data", odd, "--subset", "classes=" + shown},
           {"eval", "--checkpoint", folder, "--data", odd, "--subset", "classes=" + name},
           {"export", "--checkpoint", folder, "--onnx", run_folder("x.onnx")},
           {"check", "--data", odd},
           {"peek", "--data", odd, "-o", run_folder("sheet.png")},
           {"dump", "--data", odd, "--size", "32", "--out", run_folder("rows")},
           {"pack", "--data", odd, "--format", "tar", "--out", run_folder("tar")},
           {"pack", "--data", odd, "--format", "parquet", "--out", run_folder("parquet")},
           {"index", "--data", odd, "-o", run_folder("index.bin")},
           {"profile", "--data", odd, "--demand", "1000", "--seconds", "1", "--out",
            run_folder("profile")},
           {"receipt", "diff", folder, folder}}) {
    const ProgramResult result = run_stoker(other);
    EXPECT_EQ(result.exit_code, 0) << other[0] << ": " << result.err;
    EXPECT_EQ(result.err.find("exception"), std::string::npos) << result.err;
  }
  EXPECT_THAT(read_text(run_folder("tar") + "/classes.txt"), HasSubstr(shown));
  words.insert(words.end(), {"--epochs", "2", "--resume"});
  EXPECT_EQ(run_program(words).exit_code, 0);
}

TEST_F(TrainCommand, TwoClassesOfOneNameAreRefused) {
  const std::string odd = run_folder("photos");
  std::filesystem::copy(data(), odd, std::filesystem::copy_options::recursive);
  std::filesystem::rename(odd + "/train/arrow", odd + "/train/caf\xe9");
  std::filesystem::rename(odd + "/train/disc", odd + "/train/caf\\xe9");
  auto words = command("run", 1);
  std::replace(words.begin(), words.end(), data(), odd);
  const ProgramResult result = run_program(words);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("two class folders would be called caf\\xe9"));
  EXPECT_FALSE(std::filesystem::exists(run_folder("run")));
}

TEST_F(TrainCommand, WritersFollowNoLinkAndLeaveNothingHalf) {
  const std::string victim = out_.write("victim", "mine");
  for (const char* name :
       {"run/config.json.tmp", "run/metrics.jsonl", "run/metrics.csv", "run/live.json.tmp",
        "run/receipt.json.tmp", "run/receipt_rows.bin", "run/receipt_steps.bin", "x.onnx.tmp"}) {
    out_.link(victim, name);
  }
  const ProgramResult result = run_program(command("run", 1));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> to_onnx = {"export", "--checkpoint", run_folder("run"), "--onnx",
                                            run_folder("x.onnx")};
  ASSERT_EQ(run_stoker(to_onnx).exit_code, 0);
  EXPECT_EQ(read_text(victim), "mine");

  // A disk that takes no more leaves the old file.
  const std::string before = read_text(run_folder("x.onnx"));
  std::string line = "ulimit -f 8; exec '" STOKER_PROGRAM "'";
  for (const std::string& word : to_onnx) line += " '" + word + "'";
  const ProgramResult full = run_program({"bash", "-c", line});
  EXPECT_EQ(full.exit_code, 3);
  EXPECT_EQ(count_lines(full.err), 1) << full.err;
  EXPECT_EQ(read_text(run_folder("x.onnx")), before);
  EXPECT_FALSE(std::filesystem::exists(run_folder("x.onnx.tmp")));
}

TEST_F(TrainCommand, InterruptedSavesSaysHowToGoOnAndGoesOnExactly) {
  ASSERT_EQ(run_program(command("whole", 12)).exit_code, 0);
  const ProgramResult stopped = stop_and_resume("int", SIGINT);
  EXPECT_EQ(stopped.exit_code, 128 + SIGINT) << stopped.err;
  EXPECT_THAT(stopped.out, HasSubstr("to go on:\n  stoker train"));
  EXPECT_THAT(stopped.out,
              HasSubstr("--out " + run_folder("int") + " --checkpoint-steps 7 --resume"));
  ASSERT_NE(weights("whole", 120), "");
  EXPECT_TRUE(weights("whole", 120) == weights("int", 120)) << "the weights differ";

  EXPECT_EQ(stop_and_resume("term", SIGTERM).exit_code, 128 + SIGTERM);
  EXPECT_TRUE(weights("whole", 120) == weights("term", 120)) << "the weights differ";
}

TEST_F(TrainCommand, EvaluatesAllOfAFolderWithoutPartsThatIsNamed) {
  const std::string flat = data() + "/test", renamed = out_.path() + "/photos";
  std::filesystem::copy(flat, renamed, std::filesystem::copy_options::recursive);
  const ProgramResult trained = run_program(with(command("a", 1), {"--eval-data", renamed}));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("20 for evaluation"));
  const auto eval = [&](const std::string& path, const std::vector<std::string>& more) {
    return run_program(with({STOKER_PROGRAM, "eval", "--checkpoint", run_folder("a"), "--data",
                             path, "--json", "--precision", "fp32"},
                            more));
  };
  const ProgramResult parts = eval(data(), {}), whole = eval(renamed, {});
  ASSERT_EQ(parts.exit_code, 0) << parts.err;
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const auto a = nlohmann::json::parse(parts.out), b = nlohmann::json::parse(whole.out);
  EXPECT_EQ(b["samples"], 20);
  EXPECT_EQ(a["loss"], b["loss"]);

  // A requested part must exist, and training data are never used as test data by default.
  ProgramResult refused = eval(renamed, {"--split", "test"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--data: " + renamed));
  std::filesystem::rename(renamed, out_.make_folder("root") + "/train");
  refused = run_program(with(command("b", 1), {"--eval-data", out_.path() + "/root"}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--eval-data: " + out_.path() + "/root: no folder test"));
}

TEST_F(TrainCommand, TwoReplicasTrainAsOne) {
  ASSERT_EQ(run_program(command("one", 1)).exit_code, 0);
  ASSERT_EQ(run_program(with(command("two", 1), {"--devices", "cpu:2"})).exit_code, 0);
  ASSERT_NE(weights("one", 10), "");
  EXPECT_TRUE(weights("one", 10) == weights("two", 10)) << "the weights differ";
}

TEST_F(TrainCommand, ReceiptsTellWhetherRunsWereFedTheSame) {
  ASSERT_EQ(run_program(command("a", 2)).exit_code, 0);
  ASSERT_EQ(run_program(with(command("b", 2), {"--devices", "cpu:2", "--workers", "0"})).exit_code,
            0);
  ASSERT_EQ(run_program(with(command("c", 2),
                             {"--augment", "resize | random_crop(padding=2, mode=reflect)"}))
                .exit_code,
            0);
  const ProgramResult same = run_stoker({"receipt", "diff", run_folder("a"), run_folder("b")});
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  EXPECT_THAT(same.out, HasSubstr("pixels         same: "));
  EXPECT_THAT(same.out, HasSubstr("configuration  same in what decides the weights; others: "));
  EXPECT_THAT(same.out, HasSubstr("devices 1 and 2"));
  EXPECT_THAT(same.out, HasSubstr("weights        same in step 20, "));
  const ProgramResult other =
      run_stoker({"receipt", "diff", run_folder("a"), run_folder("c") + "/receipt.json", "--json"});
  EXPECT_EQ(other.exit_code, 1) << other.err;
  const auto json = nlohmann::json::parse(other.out);
  EXPECT_EQ(json["same"], false);
  EXPECT_EQ(json["pixels"]["epoch"], 0);
  EXPECT_GE(json["pixels"]["sample"].get<int>(), 0);
  EXPECT_EQ(json["configuration"]["deciding"][0]["name"], "recipe.train");
  EXPECT_EQ(json["weights"]["same"], false);
  const ProgramResult none = run_stoker({"receipt", "diff", run_folder("a"), run_folder("none")});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr(run_folder("none")));
}

// The same pixels do not make the same run.
TEST_F(TrainCommand, ReceiptDiffSeesAChangedRecipe) {
  ASSERT_EQ(run_program(with(command("slow", 1), {"--lr", "0.1"})).exit_code, 0);
  ASSERT_EQ(run_program(with(command("fast", 1), {"--lr", "5"})).exit_code, 0);
  const ProgramResult diff =
      run_stoker({"receipt", "diff", run_folder("slow"), run_folder("fast")});
  EXPECT_EQ(diff.exit_code, 1) << diff.out << diff.err;
  EXPECT_THAT(diff.out, HasSubstr("pixels         same: "));
  EXPECT_THAT(diff.out, HasSubstr("recipe.optimizer.learning_rate 0.1"));
  EXPECT_THAT(diff.out, HasSubstr("weights        differ in step 10: "));

  // Receipts without the rest of a run report what was not compared.
  const std::string alone = out_.make_folder("alone");
  for (const char* file : {"receipt.json", "receipt_steps.bin", "receipt_rows.bin"}) {
    std::filesystem::copy(run_folder("slow") + "/" + file, alone);
  }
  const ProgramResult pixels = run_stoker({"receipt", "diff", run_folder("fast"), alone});
  EXPECT_EQ(pixels.exit_code, 0) << pixels.out << pixels.err;
  EXPECT_THAT(pixels.out,
              HasSubstr("configuration  not compared: " + alone + " has no config.json"));
  EXPECT_THAT(pixels.out,
              HasSubstr("weights        not compared: no step has a checkpoint in both"));
}

TEST_F(TrainCommand, ReadsAConfigFile) {
  const std::string config = out_.write(
      "run.toml", "data = \"" + data() + "\"\nmodel = \"airnet-narrow\"\nbatch = 4\n" +
                      "micro-batch = 2\nlast-batch = \"pad\"\nepochs = 3\nno-receipt = true\n" +
                      "out = \"" + run_folder("c") + "\"\n");
  const ProgramResult result =
      run_stoker({"train", "--config", config, "--epochs", "1", "--eval-every", "0"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("10 of 10 steps"));
  EXPECT_THAT(result.out, ::testing::Not(HasSubstr("receipt ")));
}

TEST_F(TrainCommand, DoesNotMixRunsInOneFolder) {
  ASSERT_EQ(run_program(command("a", 1)).exit_code, 0);
  const ProgramResult again = run_program(command("a", 1));
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("--resume"));
}

// The second run finds the first one's lock and is refused; reading is allowed.
TEST_F(TrainCommand, TwoRunsDoNotWriteOneFolder) {
  const auto words = with(command("a", 200), {"--checkpoint-steps", "7", "--log-interval", "1"});
  RunningProgram first(words);
  ASSERT_TRUE(
      first.wait_for_file(run_folder("a") + "/checkpoints/step_00000007/model.safetensors", 1, 60));
  const std::string in_use =
      run_folder("a") + ": in use by process " + std::to_string(first.pid()) + " on ";
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--resume"}, {"--feed", "synthetic"}, {}}) {
    const ProgramResult second = run_program(with(words, more));
    EXPECT_EQ(second.exit_code, 3) << second.err;
    EXPECT_EQ(count_lines(second.err), 1) << second.err;
    EXPECT_THAT(second.err, HasSubstr(in_use));
  }
  EXPECT_EQ(run_stoker({"eval", "--checkpoint", run_folder("a"), "--data", data()}).exit_code, 0);
  first.send(SIGTERM);
  const ProgramResult stopped = first.wait();
  EXPECT_EQ(stopped.exit_code, 128 + SIGTERM) << stopped.err;
  int steps = 0;
  ASSERT_EQ(
      std::sscanf(stopped.out.c_str() + stopped.out.find("\ntrained "), "\ntrained %d", &steps), 1);
  EXPECT_EQ(count_metrics(run_folder("a"), "step"), steps);
  EXPECT_EQ(run_program(with(words, {"--resume", "--max-steps", std::to_string(steps)})).exit_code,
            0);
}

TEST_F(TrainCommand, RefusesWhatMakesNoSense) {
  const std::vector<std::pair<std::string, std::string>> options = {
      {"--batch", "0"},
      {"--size", "0"},
      {"--epochs", "0"},
      {"--model", "resnet19"},
      {"--devices", "gpu:0"},
      {"--devices", "cpu:0"},
      {"--feed", "fast"},
      {"--reduce", "mpi"},
      {"--reduce", "all-reduce:nccl"},
      {"--grad-wire", "int4"},
      {"--devices", "cpu:x"},
      {"--lr", "-1"},
      {"--views", "3"},
      {"--slots", "9"},
      {"--max-bad", "-1"},
      {"--keep", "0"},
      {"--threads", "-1"},
      {"--precision", "fp8"},
      {"--reduce", "parameter-server:device"}};
  for (const auto& [option, value] : options) {
    auto words = command("x", 1);
    const auto old = std::find(words.begin(), words.end(), option);
    if (old != words.end()) words.erase(old, old + 2);
    const ProgramResult result = run_program(with(words, {option, value}));
    EXPECT_EQ(result.exit_code, 2) << option << " " << value << "\n" << result.err;
    EXPECT_EQ(count_lines(result.err), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(value)) << option;
    EXPECT_FALSE(std::filesystem::exists(run_folder("x"))) << option << " " << value;
  }
}

TEST_F(TrainCommand, AGpuThatIsNotThereIsOneClearLine) {
  const ProgramResult result =
      run_program(with(command("x", 1), {"--devices", "cuda:7", "--micro-batch", "4"}));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(count_lines(result.err), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("cuda:7"));
}

TEST_F(TrainCommand, MeasuresWithoutInputAndSavesNothing) {
  const ProgramResult result =
      run_program(with(command("x", 2), {"--feed", "synthetic", "--devices", "cpu:2"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("20 of 20 steps"));
  EXPECT_THAT(result.out, HasSubstr("writes no checkpoint"));
  EXPECT_EQ(weights("x", 20), "");
}

TEST_F(TrainCommand, ReplaysWhatLiesOnTheDevice) {
  const ProgramResult result =
      run_program(with(command("x", 2), {"--feed", "resident", "--devices", "cpu:2"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("10 of an epoch's 10 batches lie on each device"));
  EXPECT_THAT(result.out, HasSubstr("20 of 20 steps"));
  const ProgramResult small =
      run_program(with(command("y", 2), {"--feed", "resident", "--resident-mib", "0.001"}));
  EXPECT_EQ(small.exit_code, 2);
  EXPECT_EQ(count_lines(small.err), 1) << small.err;
  EXPECT_THAT(small.err, HasSubstr("a budget of 1048 bytes holds no batch of"));
}

TEST_F(TrainCommand, SaysWhatIsWrongWithFolders) {
  auto words = command("x", 1);
  words[3] = out_.path() + "/nothing";
  ProgramResult result = run_program(words);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count_lines(result.err), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr(words[3]));

  words = command("x", 1);
  words.back() = "/dev/null/run";
  result = run_program(words);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_EQ(count_lines(result.err), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("/dev/null/run"));
}

TEST_F(TrainCommand, ADiskThatTakesNoMoreIsOneLineWithThePath) {
  // Files may not grow over 64 KiB: the checkpoint's first write beyond that fails, as on a full
  // disk, and the signal that comes with it does not end the program.
  std::string line = "ulimit -f 64; exec";
  for (const std::string& word : command("full", 1)) line += " '" + word + "'";
  const ProgramResult result = run_program({"bash", "-c", line});
  EXPECT_EQ(result.exit_code, 3) << result.out;
  EXPECT_EQ(count_lines(result.err), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr(run_folder("full") + "/checkpoints/"));
  EXPECT_THAT(result.err, HasSubstr("File too large"));
}

TEST_F(TrainCommand, EvalSaysWhatIsWrong) {
  ProgramResult result =
      run_stoker({"eval", "--checkpoint", out_.path() + "/none", "--data", data()});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_EQ(count_lines(result.err), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr(out_.path() + "/none"));
}

}  // namespace
}  // namespace stoker
