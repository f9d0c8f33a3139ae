// Seeds for the parsers of files other than images: sources, receipts, checkpoints.
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "pipeline/receipt/receipt.h"
#include "pipeline/seek_index/writer.h"
#include "pipeline/source/folder_index.h"
#include "tests/fuzz/fuzz_parts.h"
#include "tests/fuzz/seed_folder.h"
#include "tests/support/temp_folder.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/json.h"
#include "train/checkpoint/safetensors.h"
#include "train/cuda/plan_file.h"

namespace stoker {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class Record>
std::string_view bytes_of(const std::vector<Record>& records) {
  return {reinterpret_cast<const char*>(records.data()), records.size() * sizeof(Record)};
}

FolderIndex make_index(int classes, int files) {
  FolderIndex index;
  const auto put = [&index](const std::string& text) {
    const uint64_t at = index.text.size();
    index.text.insert(index.text.end(), text.c_str(), text.c_str() + text.size() + 1);
    return at;
  };
  for (int c = 0; c < classes; ++c) {
    index.class_names.push_back("class" + std::to_string(c));
    index.folders.push_back({put(index.class_names.back()), index.size(), c});
    for (int f = 0; f < files; ++f) index.names.push_back(put(std::to_string(f) + ".jpg"));
  }
  return index;
}

nlohmann::ordered_json receipt_json(int64_t first_step, size_t steps, size_t rows) {
  return {{"stoker", "1"},
          {"fingerprint", "0123456789abcdef"},
          {"seed", 1},
          {"global_batch", 4},
          {"rank", 0},
          {"world", 1},
          {"steps_per_epoch", 3},
          {"policies", {{"pixels", "exact"}}},
          {"options", {{"workers", "2"}}},
          {"libraries", {{"libjpeg-turbo", "2.1.5"}}},
          {"first_step", first_step},
          {"next_step", first_step + static_cast<int64_t>(steps)},
          {"rows_kept", rows},
          {"epochs", nlohmann::ordered_json::array()}};
}

}  // namespace

void add_cifar_seeds(SeedFolder& seeds) {
  for (const size_t label_bytes : {1, 2}) {
    const size_t record = label_bytes + 3072;
    std::string records(2 * record, '\x55');
    for (size_t i = 0; i < 2 * label_bytes; ++i) {
      records[i / label_bytes * record + i % label_bytes] = static_cast<char>(3 * i);
    }
    std::string names;
    for (int i = 0; i < (label_bytes == 1 ? 10 : 100); ++i) names += std::to_string(i) + "\n";
    const std::string layout = label_bytes == 1 ? "" : "x";
    seeds.add("cifar_source_fuzz", join_fuzz_parts({layout, names, records}));
    seeds.add("cifar_source_fuzz", join_fuzz_parts({layout, names, records.substr(1)}));
  }
}

void add_index_seeds(SeedFolder& seeds) {
  const TempFolder folder;
  for (int classes = 0; classes < 4; ++classes) {
    ScannedFolder scanned{make_index(classes, 1 + classes), {}, 0};
    const std::string path = folder.path() + "/index";
    if (!save_index(path, {"/", {""}, {""}}, scanned)) continue;
    seeds.add("index_cache_fuzz", read_file(path));
  }
}

void add_plan_file_seeds(SeedFolder& seeds) {
  const TempFolder folder;
  const std::string path = folder.path() + "/plans";
  for (int lines = 1; lines <= 3; ++lines) {
    add_plan_lines(path,
                   {{"a GPU; a convolution, " + std::to_string(lines) + " rows", "eng3_k2=4"}});
    seeds.add("plan_file_fuzz", read_file(path));
  }
}

void add_seek_file_seeds(SeedFolder& seeds) {
  const TempFolder folder;
  const std::string path = folder.path() + "/seek";
  for (size_t count = 0; count <= 4; ++count) {
    SeekIndexWriter writer(path);
    for (size_t i = 0; i < count; ++i) {
      writer.add(std::to_string(i), std::vector<uint8_t>(10 * i + 1, static_cast<uint8_t>(i)));
    }
    writer.finish();
    seeds.add("seek_file_fuzz", read_file(path));
  }
}

// Returns the header of a safetensors file, without its length.
std::string header_of(const std::string& path) {
  const std::string file = read_file(path);
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) length |= uint64_t{static_cast<uint8_t>(file[i])} << (8 * i);
  return file.substr(8, length);
}

void add_checkpoint_seeds(SeedFolder& seeds) {
  const TempFolder folder;
  for (const char* name : {"resnet20", "airnet"}) {
    CheckpointInfo info;
    info.model.recipe.name = name;
    info.model.recipe.input = {32, 32};
    info.model.classes = 2;
    info.model.class_names = {"a", "b"};
    const NetSpec net = info.model.net();
    TrainState state;
    state.parameters.resize(static_cast<size_t>(total_count(parameter_table(net))));
    state.momenta = state.parameters;
    state.statistics.resize(static_cast<size_t>(total_count(statistics_table(net))));
    if (info.model.recipe.average.kind != AverageKind::none) {
      state.average = state.parameters;
      state.average_statistics = state.statistics;
    }
    const std::string path = save_checkpoint(folder.path() + "/" + name, info, state, 1);
    seeds.add("checkpoint_fuzz", join_fuzz_parts({read_file(path + "/trainer.json"),
                                                  header_of(path + "/model.safetensors"),
                                                  header_of(path + "/state.safetensors")}));
  }
}

void add_receipt_seeds(SeedFolder& seeds) {
  for (uint32_t kind = 0; kind < 4; ++kind) {
    std::vector<StepRecord> steps;
    std::vector<RowRecord> rows;
    for (uint32_t step = 0; step < 2 + kind; ++step) {
      steps.push_back({step + kind, {step, kind}, 2, step / 3});
      for (uint32_t row = 0; row < 2; ++row) rows.push_back({2 * step + row, 7 * row + kind});
    }
    nlohmann::ordered_json json = receipt_json(kind / 2, steps.size(), rows.size());
    if (kind == 3) json["global_batch"] = 8;
    seeds.add("receipt_fuzz", join_fuzz_parts({bytes_of(steps), bytes_of(rows), json.dump()}));
  }
}

void add_train_seeds(SeedFolder& seeds) {
  const TempFolder folder;
  const std::string path = folder.path() + "/model";
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  write_safetensors(path, std::vector<TensorView>{{"a.weight", {2, 3}, values}, {"b", {6}, values}},
                    {{"format", "pt"}});
  seeds.add("safetensors_fuzz", read_file(path));
  write_safetensors(path, {}, {});
  seeds.add("safetensors_fuzz", read_file(path));

  CheckpointInfo info;
  info.model.class_names = {"a", "b"};
  seeds.add("trainer_json_fuzz", checkpoint_to_json(info).dump(1));
  info.model.recipe.name = "resnet18";
  info.model.recipe.schedule.milestones = {30, 60};
  info.model.recipe.precision = Precision::bf16;
  seeds.add("trainer_json_fuzz", checkpoint_to_json(info).dump());
}

}  // namespace stoker
