// Runs stoker bench and stoker plan as a user does: files, exit codes, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/tools/cli_harness.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

class BenchCli : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  Json read_json(const std::string& name) const { return Json::parse(read_text(path(name))); }
  // Runs a feed bench that takes a fraction of a second.
  ProgramResult run_feed(const std::string& out) {
    return run_stoker({"bench", "feed", "--size", "32", "--workers", "1", "--batch", "8",
                       "--ring-depth", "2", "--cpu-ms", "1", "--repeats", "6", "--out", path(out)});
  }
  TempFolder folder_;
};

TEST_F(BenchCli, WritesJsonAndMarkdownThatNameMachineAndCommit) {
  const ProgramResult result = run_feed("a");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("| decode and augment"));
  const Json json = read_json("a/feed.json");
  EXPECT_EQ(json["bench"], "feed");
  EXPECT_THAT(json["command"].get<std::string>(), HasSubstr("stoker bench feed --size 32"));
  EXPECT_FALSE(json["machine"]["cpu"].empty());
  EXPECT_TRUE(json["machine"].contains("commit"));
  EXPECT_EQ(json["settings"]["data"], "64 drawn JPEGs of 500 x 375, from files");
  EXPECT_EQ(json["figures"][0]["values"].size(), 6u);
  EXPECT_EQ(json["plots"][0]["name"], "feed_scaling");
  EXPECT_THAT(read_text(path("a/feed.md")), HasSubstr(json["machine"]["cpu"].get<std::string>()));

  // The same file is no worse than itself; a hundredfold cost is.
  ProgramResult compared =
      run_stoker({"bench", "compare", path("a/feed.json"), path("a/feed.json")});
  EXPECT_EQ(compared.exit_code, 0) << compared.err << compared.out;
  Json slower = json;
  for (Json& figure : slower["figures"]) {
    for (Json& value : figure["values"]) value = 100 * value.get<double>();
  }
  folder_.write("slower.json", slower.dump());
  compared = run_stoker({"bench", "compare", path("a/feed.json"), path("slower.json")});
  EXPECT_EQ(compared.exit_code, 1) << compared.out;
  EXPECT_THAT(compared.out, HasSubstr("WORSE"));

  const ProgramResult nodes =
      run_stoker({"plan", "--gpus", "8", "--rate", "1e6", "--feed", path("a/feed.json"), "--cores",
                  "0", "--node-cores", "64", "--link-gbit", "1e6", "--json"});
  ASSERT_EQ(nodes.exit_code, 0) << nodes.err;
  const Json wanted = Json::parse(nodes.out)["results"];
  EXPECT_EQ(wanted["cpu_nodes"].get<int>(),
            static_cast<int>(std::ceil(wanted["busy_cores"].get<double>() / 0.8 / 64)));
  // A plan needs only that file.
  const ProgramResult plan = run_stoker(
      {"plan", "--gpus", "8", "--rate", "3000", "--feed", path("a/feed.json"), "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const Json planned = Json::parse(plan.out);
  EXPECT_NEAR(planned["results"]["busy_cores"].get<double>(),
              24 * json["results"]["cpu_ms_per_image"].get<double>(), 1e-9);
}

TEST_F(BenchCli, APlanMeasuresModelsAndChecksItself) {
  const ProgramResult plan =
      run_stoker({"plan", "--gpus", "2", "--rate", "100", "--batch", "8", "--size", "32",
                  "--seconds", "0.5", "--check", "0.6", "--out", path("plan")});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("the fewest that feed them: modelled "));
  const Json json = read_json("plan/plan.json");
  const Json& results = json["results"];
  EXPECT_NEAR(results["images_per_second"].get<double>(), 200, 4);
  EXPECT_GT(results["cpu_ms_per_image"], 0);
  EXPECT_EQ(json["settings"]["feed"]["augment"], "output=32x32 random_resized_crop | flip");
  const Json& check = results["check"];
  EXPECT_GT(check["steps"], 0);
  EXPECT_LE(check["rate"].get<double>(), 100);
  const double measured = check["measured_images_per_second"];
  EXPECT_GT(measured, 0);
  EXPECT_NEAR(check["off"].get<double>(),
              check["predicted_images_per_second"].get<double>() / measured - 1, 1e-9);
  EXPECT_THAT(plan.out, HasSubstr("% off what it delivered in "));
}

TEST_F(BenchCli, OptionsComeFromASectionOfItsOwn) {
  folder_.write(
      "all.toml",
      "[bench.slice]\nbatch = 8\nsize = 8\nrepeats = 3\n[bench.layout]\nbatch = 7\n[train]\n"
      "epochs = 3\n");
  const ProgramResult result =
      run_stoker({"bench", "slice", "--config", path("all.toml"), "--replicas", "2", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["settings"]["batch"], 8);
  EXPECT_EQ(json["settings"]["replicas"], 2);
}

TEST_F(BenchCli, GuardComparesWithTheSameProcessor) {
  const std::vector<std::string> guard = {"bench", "guard", "--repeats", "5", "--passes", "1"};
  const auto run_with = [&](const std::string& option, const std::string& folder) {
    std::vector<std::string> words = guard;
    words.insert(words.end(), {option, path(folder)});
    return run_stoker(words);
  };
  const ProgramResult first = run_with("--out", "kept");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  Json kept = read_json("kept/guard.json");
  Json& figures = kept["figures"];
  EXPECT_GE(figures.size(), 9u);
  figures.erase(figures.begin() + 2, figures.end());
  for (Json& value : figures[0]["values"]) value = 0.01 * value.get<double>();
  for (Json& value : figures[1]["values"]) value = 100 * value.get<double>();
  folder_.write("kept/guard.json", kept.dump());
  const ProgramResult second = run_with("--baseline", "kept");
  const bool is_quiet = second.err.find("was not quiet") == std::string::npos;
  EXPECT_EQ(second.exit_code, is_quiet ? 1 : 3) << second.err << second.out;
  EXPECT_THAT(second.out, HasSubstr("WORSE"));
  EXPECT_THAT(second.out, HasSubstr("better"));

  kept["settings"]["processor"] = "NoVendor 1.2";
  folder_.write("kept/guard.json", kept.dump());
  const ProgramResult other = run_with("--baseline", "kept");
  EXPECT_EQ(other.exit_code, 2) << other.out;
  EXPECT_THAT(other.err, HasSubstr("no result of this processor"));
  EXPECT_THAT(other.err, HasSubstr("NoVendor 1.2"));
}

TEST_F(BenchCli, EveryBenchHasHelpWithExamples) {
  for (const std::string name : {"feed", "emulate", "scaling", "links", "depth", "layout", "slice",
                                 "predict", "convergence", "guard", "compare"}) {
    const ProgramResult help = run_stoker({"bench", name, "--help"});
    EXPECT_EQ(help.exit_code, 0) << name << help.err;
    EXPECT_THAT(help.out, HasSubstr("Examples:\n  stoker bench " + name));
    EXPECT_THAT(help.out, HasSubstr("Exit codes"));
    EXPECT_EQ(run_stoker({"bench", name, "--no-such-option"}).exit_code, 2) << name;
  }
  EXPECT_THAT(run_stoker({"bench", "--help"}).out, HasSubstr("emulate"));
  EXPECT_EQ(run_stoker({"bench"}).exit_code, 2);
}

TEST_F(BenchCli, RefusesWhatMakesNoSense) {
  const auto refused = [](std::vector<std::string> words, const std::string& why) {
    const ProgramResult result = run_stoker(std::move(words));
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr(why));
  };
  refused({"bench", "fed"}, "'fed'");
  refused({"bench", "feed", "--workers", "1..x"}, "--workers: '1..x'");
  refused({"bench", "feed", "--workers", "2,2"}, "twice");
  refused({"bench", "feed", "--data", "/no/such"}, "/no/such");
  refused({"bench", "emulate", "--accel", "h900"}, "h100-training");
  refused({"bench", "emulate", "--n", "3,2"},
          "--n: 3,2 is not ascending (see stoker bench emulate");
  refused({"bench", "predict", "--machine", "/no/machine.json"}, "--machine: '/no/machine.json'");
  refused({"bench", "scaling", "--data", "/no/such"}, "--data: it is for --feed resident and real");
  refused({"bench", "scaling", "--feed", "fed"}, "--feed");
  refused({"bench", "scaling", "--feed", "real", "--data", "/no/such"}, "/no/such");
  refused({"bench", "slice", "--machine", "2xthrottled", "--device", "cpu:0"}, "--machine");
  refused({"bench", "depth", "--machine", "/no/machine.json"}, "--machine: '/no/machine.json'");
  refused({"bench", "convergence", "--n", "2,4"}, "from 1");
  refused({"bench", "convergence", "--batch", "9"}, "9 cannot be cut into 2");
  refused({"bench", "convergence", "--data", "/no/such"}, "/no/such");
  refused({"bench", "predict", "--n", "1,3"}, "2xthrottled's 2 GPUs");
  refused({"bench", "compare", "/no/a.json", "/no/b.json"}, "/no/a.json");
  refused({"plan", "--gpus", "8", "--rate", "3000", "--feed", "/no/feed.json"}, "/no/feed.json");
  refused({"plan", "--gpus", "8", "--rate", "3", "--feed", "x", "--check"},
          "--check: with --feed nothing is measured here");
  refused({"plan", "--gpus", "8", "--rate", "3", "--node-cores", "8"}, "needs --cores");
  refused({"plan", "--gpus", "8", "--rate", "3", "--link-gbit", "8"}, "--node-cores");
  refused({"plan", "--gpus", "8", "--rate", "3", "--cores", "8"}, "--node-cores");
  folder_.write("other.json", "{\"figures\": 3}");
  refused({"bench", "compare", path("other.json"), path("other.json")}, "not a report");
}

class LinkPlanCli : public BenchCli {
 protected:
  // Writes what `stoker bench feed` found elsewhere.
  std::string feed() {
    Json report;
    report["settings"] = {{"size", 224}};
    report["machine"] = {{"cpu", "a CPU"}, {"cores_usable", 4}};
    report["results"] = {{"cpu_ms_per_image", 1.0},          {"cpu_ms_per_image_low", 0.9},
                         {"cpu_ms_per_image_high", 1.1},     {"mean_sample_bytes", 110'000.0},
                         {"scratch_bytes_per_worker", 1000}, {"image_size", {224, 224}}};
    folder_.write("feed.json", report.dump());
    return path("feed.json");
  }
};

TEST_F(LinkPlanCli, PredictsAMachinesScaling) {
  const ProgramResult result =
      run_stoker({"plan", "--machine", "4xm60", "--rate", "78", "--batch", "32", "--model",
                  "resnet50", "--reduce", "all-reduce:nccl,parameter-server", "--grad-wire",
                  "fp32,bf16", "--feed", feed(), "--out", path("plan")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Weak scaling"));
  EXPECT_THAT(result.out, HasSubstr("measured by the study"));
  const Json json = read_json("plan/plan.json");
  EXPECT_EQ(json["settings"]["gpus"], 4);  // all of the machine
  EXPECT_EQ(json["results"]["scaling"].size(), 2 * 4 * 4u);
  EXPECT_GT(json["results"]["slices"][0]["largest_batch"], 8);
  EXPECT_EQ(json["plots"].size(), 5u);

  // The machine that it writes is one that it reads: the same links, the same prediction.
  folder_.write("machine.json", json["results"]["machine"].dump());
  const ProgramResult again =
      run_stoker({"plan", "--machine", path("machine.json"), "--rate", "78", "--batch", "32",
                  "--model", "resnet50", "--reduce", "all-reduce:nccl,parameter-server",
                  "--grad-wire", "fp32,bf16", "--feed", feed(), "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(Json::parse(again.out)["results"], json["results"]);

  // Few cores limit all of them.
  const ProgramResult starved =
      run_stoker({"plan", "--machine", "4xm60", "--rate", "78", "--grad-mib", "90", "--cores",
                  "0.1", "--feed", feed(), "--json"});
  ASSERT_EQ(starved.exit_code, 0) << starved.err;
  for (const Json& row : Json::parse(starved.out)["results"]["scaling"]) {
    EXPECT_LE(row["images_per_second"].get<double>(), 100 * (1 + 1e-9));
  }
}

TEST_F(LinkPlanCli, ManyGpusAreCountedInDoublings) {
  Json machine = {{"name", "ten"}, {"memory_gb_per_second", 100}, {"peers", "tree"}};
  for (int gpu = 0; gpu < 10; ++gpu) {
    const std::string link = "link" + std::to_string(gpu);
    machine["links"].push_back({{"name", link}, {"pcie", 4}, {"lanes", 16}});
    machine["gpus"].push_back({{"name", "gpu" + std::to_string(gpu)}, {"path", {link}}});
  }
  folder_.write("ten.json", machine.dump());
  const ProgramResult result =
      run_stoker({"plan", "--machine", path("ten.json"), "--rate", "500", "--grad-mib", "90",
                  "--reduce", "all-reduce:nccl", "--feed", feed(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::vector<int> counts;
  const Json json = Json::parse(result.out);
  for (const Json& row : json["results"]["scaling"]) {
    if (row["mode"] == "weak") counts.push_back(row["devices"]);
  }
  EXPECT_EQ(counts, (std::vector<int>{1, 2, 4, 8, 10}));
  EXPECT_EQ(json["settings"]["machine"], "ten");
}

TEST_F(LinkPlanCli, RefusesWhatItCannotPredict) {
  const auto refused = [&](std::vector<std::string> more, const std::string& why) {
    std::vector<std::string> words = {"plan", "--rate", "78", "--feed", feed()};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult result = run_stoker(std::move(words));
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr(why));
  };
  refused({}, "--gpus");
  refused({"--gpus", "8", "--model", "resnet50"}, "--model: with --feed nothing is measured");
  refused({"--gpus", "8", "--cores", "3"}, "--cores: it is for a prediction");
  refused({"--machine", "8xh100", "--grad-mib", "9", "--classes", "10"}, "--classes");
  refused({"--machine", "9xh100", "--model", "resnet50"}, "--machine: '9xh100'");
  refused({"--machine", "8xh100"}, "either --model or --grad-mib");
  refused({"--machine", "8xh100", "--model", "resnet50", "--grad-mib", "9"},
          "either --model or --grad-mib");
  refused({"--machine", "8xh100", "--gpus", "9", "--model", "resnet50"}, "8xh100 has 8 GPUs");
  refused({"--machine", "8xh100", "--model", "resnet51"}, "resnet51");
  refused({"--machine", "8xh100", "--grad-mib", "9", "--grad-wire", "int8"}, "int8");
  folder_.write("machine.json", R"({"name": "mine"})");
  refused({"--machine", path("machine.json"), "--grad-mib", "9"}, "machine.json");
}

}  // namespace
}  // namespace stoker
