// Every JSON file that a user may hand to the program, or that a run left, damaged in every way:
// one line with the file's path, exit code 2 or 3, and no library's own words.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/train_runs.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;
namespace fs = std::filesystem;

struct Damage {
  const char* name;
  std::string (*of)(const std::string& text);
};

// Values that a program reads as a list, an object, a number or a text become something else.
std::string with_other_types(const std::string& text) {
  auto json = nlohmann::ordered_json::parse(text);
  for (auto& [key, value] : json.items()) {
    value = value.is_string()   ? nlohmann::ordered_json(7)
            : value.is_object() ? nlohmann::ordered_json::array({1})
                                : nlohmann::ordered_json({{"x", "y"}});
  }
  return json.dump();
}

const Damage kDamages[] = {
    {"empty", [](const std::string&) { return std::string(); }},
    {"cut", [](const std::string& text) { return text.substr(0, text.size() / 2); }},
    {"bytes that are no UTF-8", [](const std::string&) { return std::string("\xff\xfe{\"a"); }},
    {"a name that is no UTF-8",
     [](const std::string& text) { return "{\"caf\xe9\": 1," + text.substr(1); }},
    {"other types", with_other_types},
    {"no fields", [](const std::string&) { return std::string("{}"); }},
    {"a list", [](const std::string&) { return std::string("[1, 2]"); }},
    {"a number", [](const std::string&) { return std::string("17"); }},
    {"deep nesting",
     [](const std::string&) {
       return "{\"schema\": " + std::string(200'000, '[') + std::string(200'000, ']') + "}";
     }},
};

class DamagedJson : public TrainRuns {
 protected:
  // Damages the file in every way, and returns it to what it was. Of a configuration that is
  // compared any object is one.
  static void refuse_each(const std::string& file, const Words& words, bool any_object = false) {
    const std::string text = read_text(file);
    ASSERT_NE(text, "") << file;
    const fs::path path(file);
    const auto write = [](const std::string& to, const std::string& content) {
      FILE* out = std::fopen(to.c_str(), "wb");
      std::fwrite(content.data(), 1, content.size(), out);
      std::fclose(out);
    };
    for (const Damage& damage : kDamages) {
      const std::string name = damage.name;
      if (any_object && (name == "other types" || name == "no fields")) continue;
      write(file, damage.of(text));
      const ProgramResult result = run_program(words);
      const std::string what = file + ", " + damage.name + ": " + result.err;
      EXPECT_TRUE(result.exit_code == 2 || result.exit_code == 3) << result.exit_code << what;
      EXPECT_EQ(count_lines(result.err), 1) << what;
      EXPECT_THAT(result.err, HasSubstr(path.filename().string())) << what;
      EXPECT_THAT(result.err, HasSubstr(path.parent_path().string())) << what;
      for (const char* word : {"exception", "syntax error", "std::"}) {
        EXPECT_THAT(result.err, Not(HasSubstr(word))) << what;
      }
    }
    write(file, text);
  }
  std::string checkpoint(int step) const {
    char name[32];
    std::snprintf(name, sizeof name, "step_%08d", step);
    return run_folder("run") + "/checkpoints/" + name;
  }
};

TEST_F(DamagedJson, OfARunIsNamed) {
  const std::string run = run_folder("run"), other = run_folder("other");
  ASSERT_EQ(run_program(command("run", 1)).exit_code, 0);
  fs::copy(run, other, fs::copy_options::recursive);
  refuse_each(run + "/live.json", {STOKER_PROGRAM, "top", run, "--once"});
  const Words diff = {STOKER_PROGRAM, "receipt", "diff", run, other};
  refuse_each(run + "/receipt.json", diff);
  refuse_each(run + "/config.json", diff, true);
  // Two checkpoints, of which the newer one is damaged, are the next test's.
  refuse_each(checkpoint(10) + "/trainer.json",
              {STOKER_PROGRAM, "eval", "--checkpoint", run, "--data", data()});
  refuse_each(checkpoint(10) + "/trainer.json",
              with(command("run", 1), {"--epochs", "2", "--resume"}));
}

TEST_F(DamagedJson, OfABenchOrAMachineIsNamed) {
  const std::string out = run_folder("bench");
  ASSERT_EQ(run_program({STOKER_PROGRAM, "bench", "feed", "--data", data(), "--size", "16",
                         "--batch", "8", "--workers", "1", "--ring-depth", "2", "--cpu-ms", "1",
                         "--repeats", "2", "--out", out})
                .exit_code,
            0);
  const std::string feed = out + "/feed.json";
  const std::string same = out_.write("same.json", read_text(feed));
  refuse_each(feed, {STOKER_PROGRAM, "bench", "compare", feed, same});
  refuse_each(feed, {STOKER_PROGRAM, "bench", "compare", same, feed});
  refuse_each(feed, {STOKER_PROGRAM, "plan", "--gpus", "2", "--rate", "100", "--feed", feed});
  const std::string machine =
      out_.write("machine.json",
                 R"({"name": "m", "memory_gb_per_second": 100, "peers": "none",
          "links": [{"name": "l", "gb_per_second_down": 10, "gb_per_second_up": 10}],
          "gpus": [{"name": "g", "path": ["l"]}]})");
  refuse_each(machine, {STOKER_PROGRAM, "plan", "--machine", machine, "--model", "resnet50",
                        "--batch", "64", "--rate", "100", "--feed", same});
}

TEST_F(DamagedJson, OfShardsIsNamed) {
  // An index that names one shard, which is never reached.
  const std::string index =
      out_.write("mds/index.json",
                 R"({"version": 2, "shards": [{"format": "mds", "version": 2, "samples": 1,
          "column_names": ["image", "label"], "column_encodings": ["jpeg", "int"],
          "column_sizes": [null, 8], "compression": null, "hashes": [], "zip_data": null,
          "raw_data": {"basename": "shard.00000.mds", "bytes": 10, "hashes": {}}}]})");
  out_.write("mds/shard.00000.mds", "0123456789");
  refuse_each(index, {STOKER_PROGRAM, "check", "--data", out_.path() + "/mds"});
}

// The older checkpoint is taken, and the run ends as if it had gone on from it.
TEST_F(DamagedJson, OfTheNewestCheckpointIsSetAside) {
  ASSERT_EQ(run_program(with(command("run", 2), {"--keep", "5"})).exit_code, 0);
  ASSERT_TRUE(fs::exists(checkpoint(10)));
  const std::string weights_after = weights("run", 20);
  for (const Damage& damage : kDamages) {
    const std::string file = checkpoint(20) + "/trainer.json";
    const std::string text = read_text(file);
    FILE* out = std::fopen(file.c_str(), "wb");
    const std::string bad = damage.of(text);
    std::fwrite(bad.data(), 1, bad.size(), out);
    std::fclose(out);
    const ProgramResult result = run_program(with(command("run", 2), {"--keep", "5", "--resume"}));
    EXPECT_EQ(result.exit_code, 0) << damage.name << ": " << result.err;
    EXPECT_THAT(result.out, HasSubstr(file)) << damage.name;
    EXPECT_EQ(weights("run", 20), weights_after) << damage.name;
  }
}

TEST_F(DamagedJson, OfAllCheckpointsEndsTheRun) {
  ASSERT_EQ(run_program(with(command("run", 2), {"--keep", "5"})).exit_code, 0);
  for (const int step : {10, 20}) {
    fs::resize_file(checkpoint(step) + "/trainer.json", 20);
  }
  const ProgramResult result = run_program(with(command("run", 2), {"--resume"}));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(count_lines(result.err), 1) << result.err;
  for (const int step : {10, 20}) EXPECT_THAT(result.err, HasSubstr(checkpoint(step)));
  EXPECT_THAT(result.err, HasSubstr("to begin anew, take another --out"));
  EXPECT_TRUE(fs::exists(checkpoint(20) + "/model.safetensors"));  // for whoever can mend it
}

}  // namespace
}  // namespace stoker
