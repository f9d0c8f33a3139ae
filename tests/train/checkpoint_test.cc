#include "train/checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "pipeline/files/durable_file.h"
#include "tests/support/temp_folder.h"
#include "tests/support/wait_until.h"
#include "train/checkpoint/checksum.h"
#include "train/checkpoint/json.h"
#include "train/checkpoint/safetensors.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

CheckpointInfo info_of(int64_t step, AverageKind average = AverageKind::none) {
  CheckpointInfo info;
  info.model.recipe = default_recipe("resnet20");
  info.model.recipe.average.kind = average;
  info.model.class_names = {"cat", "dog \"quoted\"", "\xc3\xa9l\xc3\xa9phant"};
  info.model.classes = 3;
  info.seed = 0xfedcba9876543210;
  info.step = step;
  info.total_steps = 1000;
  info.loader = {step, step / 10, step % 10, 0xffffffffffffff01, {}};
  info.epoch = {1.0 / 3, 640, 17, 2.5};
  info.best_top1 = 0.1;
  return info;
}

TrainState state_in(const CheckpointInfo& info) {
  const NetSpec net = info.model.net();
  TrainState state;
  const auto fill = [&](std::vector<float>& values, int64_t count, float first) {
    values.resize(count);
    std::iota(values.begin(), values.end(), first + static_cast<float>(info.step));
  };
  const int64_t parameters = total_count(parameter_table(net));
  const int64_t statistics = total_count(statistics_table(net));
  fill(state.parameters, parameters, 0.25f);
  fill(state.momenta, parameters, -0.5f);
  fill(state.statistics, statistics, 7);
  if (has_second_moments(info.model.recipe.optimizer.kind)) {
    fill(state.second_moments, parameters, 0.75f);
  }
  if (info.model.recipe.average.kind != AverageKind::none) {
    fill(state.average, parameters, 0.125f);
    fill(state.average_statistics, statistics, 9);
  }
  return state;
}

std::string save(const std::string& runs, int64_t step, int keep = 3) {
  const CheckpointInfo info = info_of(step);
  return save_checkpoint(runs, info, state_in(info), keep);
}

TEST(Checkpoint, GivesBackEveryBit) {
  for (const AverageKind average : {AverageKind::none, AverageKind::ema}) {
    const TempFolder folder;
    CheckpointInfo info = info_of(123, average);
    if (average == AverageKind::ema) info.loader.grid = {12, 3, 77};
    if (average == AverageKind::ema) info.model.recipe.optimizer.kind = OptimizerKind::adam;
    const TrainState state = state_in(info);
    const std::string path = save_checkpoint(folder.path(), info, state, 3);
    EXPECT_EQ(path, newest_checkpoint(folder.path()));
    EXPECT_EQ(read_whole_file(folder.path() + "/latest"), "step_00000123\n");

    CheckpointInfo info_back;
    TrainState state_back;
    load_checkpoint(path, info_back, state_back);
    EXPECT_EQ(state_back.parameters, state.parameters);
    EXPECT_EQ(state_back.momenta, state.momenta);
    EXPECT_EQ(state_back.second_moments, state.second_moments);
    EXPECT_EQ(state_back.statistics, state.statistics);
    EXPECT_EQ(state_back.average, state.average);
    EXPECT_EQ(state_back.average_statistics, state.average_statistics);
    EXPECT_EQ(info_back.seed, info.seed);
    EXPECT_EQ(info_back.step, 123);
    EXPECT_EQ(info_back.loader.next_step, 123);
    EXPECT_EQ(info_back.loader.epoch, 12);
    EXPECT_EQ(info_back.loader.step_in_epoch, 3);
    EXPECT_EQ(info_back.loader.fingerprint, info.loader.fingerprint);
    EXPECT_EQ(info_back.loader.grid, info.loader.grid);
    EXPECT_EQ(info_back.batch, info.model.recipe.batch);
    EXPECT_EQ(info_back.epoch.loss_sum, info.epoch.loss_sum);
    EXPECT_EQ(info_back.best_top1, info.best_top1);
    EXPECT_EQ(info_back.model.class_names, info.model.class_names);
  }
}

TEST(Checkpoint, ModelFileHoldsTheWeightsToUseWithPyTorchsNames) {
  for (const AverageKind average : {AverageKind::none, AverageKind::ema}) {
    const TempFolder folder;
    const CheckpointInfo info = info_of(5, average);
    const TrainState state = state_in(info);
    const std::string path = save_checkpoint(folder.path(), info, state, 3);
    const SafetensorsFile file(path + "/model.safetensors");
    EXPECT_TRUE(file.has("conv1.weight"));
    EXPECT_TRUE(file.has("bn1.running_var"));
    EXPECT_EQ(file.metadata().at("format"), "pt");
    const LoadedModel model = load_model(path + "/model.safetensors");
    const bool averaged = average != AverageKind::none;
    EXPECT_EQ(model.parameters, averaged ? state.average : state.parameters);
    EXPECT_EQ(model.statistics, averaged ? state.average_statistics : state.statistics);
    EXPECT_EQ(model.info.class_names, info.model.class_names);
    EXPECT_EQ(model.info.recipe.name, "resnet20");
  }
}

TEST(Checkpoint, ModelIsFoundInAFolderOfARun) {
  const TempFolder folder;
  const std::string runs = folder.path() + "/checkpoints";
  save(runs, 1);
  const std::string newest = save(runs, 2) + "/model.safetensors";
  EXPECT_EQ(load_model(folder.path()).file, newest);
  EXPECT_EQ(load_model(runs).file, newest);
  EXPECT_EQ(load_model(runs + "/step_00000001").file, runs + "/step_00000001/model.safetensors");
  EXPECT_THROW(load_model(folder.path() + "/nothing"), std::runtime_error);
}

TEST(Checkpoint, KeepsTheNewest) {
  const TempFolder folder;
  for (int64_t step = 1; step <= 12; ++step) save(folder.path(), step, 2);
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    left.push_back(entry.path().filename().string());
  }
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, (std::vector<std::string>{"latest", "step_00000011", "step_00000012"}));
}

TEST(Checkpoint, TornOnesAreLeftAside) {
  const auto damage = [](const std::string& file, auto change) {
    std::string bytes = read_whole_file(file);
    change(bytes);
    const std::string_view piece = bytes;
    write_flushed(file, {&piece, 1});
  };
  for (const char* name : {"model.safetensors", "state.safetensors", "trainer.json"}) {
    for (const int kind : {0, 1, 2, 3}) {
      const TempFolder folder;
      const std::string good = save(folder.path(), 1);
      const std::string bad = save(folder.path(), 2);
      const std::string file = bad + "/" + name;
      if (kind == 0) fs::remove(file);
      if (kind == 1) damage(file, [](std::string& b) { b.resize(b.size() / 2); });
      if (kind == 2) damage(file, [](std::string& b) { b.clear(); });
      if (kind == 3) damage(file, [](std::string& b) { b[b.size() / 2] ^= 0x20; });
      // May hit whitespace, which is harmless.
      if (kind == 3 && std::string(name) == "trainer.json") continue;
      std::vector<std::string> torn;
      EXPECT_EQ(newest_checkpoint(folder.path(), &torn), good) << name << " " << kind;
      EXPECT_EQ(torn.size(), 1u);
      CheckpointInfo info;
      TrainState state;
      EXPECT_THROW(load_checkpoint(bad, info, state), std::runtime_error);
    }
  }
}

TEST(Checkpoint, RefusesNumbersThatAreNotFinite) {
  const TempFolder folder;
  const CheckpointInfo info = info_of(3);
  TrainState state = state_in(info);
  state.momenta[7] = NAN;
  EXPECT_THROW(save_checkpoint(folder.path(), info, state, 3), std::runtime_error);
  EXPECT_EQ(newest_checkpoint(folder.path()), "");
}

TEST(Checkpoint, AnUnknownFormatIsRefused) {
  const TempFolder folder;
  const std::string path = save(folder.path(), 1);
  std::string text = read_whole_file(path + "/trainer.json");
  text.replace(text.find("\"format\": 1"), 11, "\"format\": 2");
  replace_file(path + "/trainer.json", text);
  CheckpointInfo info;
  TrainState state;
  EXPECT_THROW(load_checkpoint(path, info, state), std::runtime_error);
}

TEST(Checkpoint, ANumberThatDoesNotFitIsRefusedByName) {
  const TempFolder folder;
  nlohmann::json json =
      nlohmann::json::parse(read_whole_file(save(folder.path(), 1) + "/trainer.json"));
  const auto refusal = [](const nlohmann::json& changed) -> std::string {
    try {
      checkpoint_from_json(changed);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal(json), "accepted");
  json["loader"]["epoch"] = 1e38;
  EXPECT_EQ(refusal(json),
            "epoch: 1e+38 is no whole number from -9223372036854775808 to 9223372036854775807");
  json["classes"] = -3e9;
  EXPECT_EQ(refusal(json),
            "classes: -3000000000.0 is no whole number from -2147483648 to 2147483647");
}

// If a recipe needs more weights than the file has (here some terabytes), nothing may be allocated
// for them.
TEST(Checkpoint, MoreWeightsThanTheFileHoldsAreRefusedFirst) {
  const TempFolder folder;
  const std::string path = save(folder.path(), 1);
  std::string text = read_whole_file(path + "/trainer.json");
  text.replace(text.find("\"classes\": 3"), 12, "\"classes\": 2000000000");
  replace_file(path + "/trainer.json", text);
  CheckpointInfo info;
  TrainState state;
  try {
    load_checkpoint(path, info, state);
    FAIL() << "was accepted";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("tensor parameters/"), std::string::npos)
        << error.what();
  }
}

// Lists all files, with their sizes, while another process writes them.
std::string names_in(const std::string& folder) {
  std::string names;
  std::error_code gone;
  for (fs::recursive_directory_iterator entry(folder, gone), end; entry != end;
       entry.increment(gone)) {
    const auto bytes = fs::file_size(entry->path(), gone);
    names += entry->path().string() + (gone ? "" : " " + std::to_string(bytes)) + "\n";
  }
  return names;
}

// The seals of checkpoints that users keep: FNV-1a's published values, and the definition for every
// length and cut.
TEST(Checksum, IsFnv1a) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8c);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8);
  std::string text;
  uint64_t expected = fnv1a("");
  for (int length = 1; length <= 40; ++length) {
    text.push_back(static_cast<char>(37 * length));
    expected = (expected ^ static_cast<unsigned char>(text.back())) * 0x100000001b3;
    for (size_t cut = 0; cut <= text.size(); ++cut) {
      EXPECT_EQ(fnv1a(text.substr(cut), fnv1a(text.substr(0, cut))), expected) << length << cut;
    }
  }
}

// A writer is killed repeatedly at different moments: the checkpoint that is found must be complete
// and not older than the last published one.
TEST(Checkpoint, KilledWhileWriting) {
  const TempFolder folder;
  save(folder.path(), 1, 2);
  int64_t newest = 1;
  for (int round = 0; round < 14; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int64_t step = newest + 1;; ++step) save(folder.path(), step, 2);
    }
    // The later the round, the more changes of the folder are seen first; the last one waits until
    // a checkpoint is complete.
    std::string last = names_in(folder.path());
    for (int changes = 0; changes < 2 * round; ++changes) {
      ASSERT_TRUE(wait_until([&] { return names_in(folder.path()) != last; }));
      last = names_in(folder.path());
    }
    const std::string before = newest_checkpoint(folder.path());
    if (round == 13 && newest == 1) {
      ASSERT_TRUE(wait_until([&] { return newest_checkpoint(folder.path()) != before; }));
    }
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    std::vector<std::string> torn;
    const std::string path = newest_checkpoint(folder.path(), &torn);
    ASSERT_FALSE(path.empty());
    EXPECT_TRUE(torn.empty()) << torn[0];
    CheckpointInfo info;
    TrainState state;
    load_checkpoint(path, info, state);
    EXPECT_GE(info.step, newest);
    EXPECT_EQ(state.parameters, state_in(info).parameters);
    newest = info.step;
  }
  EXPECT_GT(newest, 1);
}

}  // namespace
}  // namespace stoker
