#include "pipeline/receipt/files.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/files/json_file.h"

namespace stoker {
namespace {

template <typename Record>
std::vector<Record> read_records(const std::filesystem::path& path, size_t count) {
  std::vector<Record> records;
  std::error_code missing;
  const uintmax_t bytes = std::filesystem::file_size(path, missing);
  std::ifstream file(path, std::ios::binary);
  if (!missing && bytes / sizeof(Record) >= count) {  // otherwise the number may be arbitrary
    records.resize(count);
    file.read(reinterpret_cast<char*>(records.data()),
              static_cast<std::streamsize>(count * sizeof(Record)));
  }
  if (!file || records.size() != count) {
    throw std::runtime_error(path.string() + ": cannot read " + std::to_string(count) +
                             " records of " + std::to_string(sizeof(Record)) +
                             " bytes: it is shorter than its receipt.json says, or missing");
  }
  return records;
}

int world_of(const nlohmann::ordered_json& json) {
  const auto found = json.find("world");
  return found == json.end() ? 1 : whole_number<int>(*found);
}

// Checks that every field that a reader uses exists and has its type.
void check_fields(const nlohmann::ordered_json& json) {
  for (const char* key : {"stoker", "fingerprint", "seed", "global_batch"}) json.at(key);
  for (const char* key : {"policies", "libraries"}) {
    if (!json.at(key).is_object()) throw std::runtime_error(std::string(key) + " is no object");
  }
  const auto number = [&](const char* key) { return whole_number<int64_t>(json.at(key)); };
  const int64_t numbers[] = {number("first_step"), number("next_step"), number("rows_kept"),
                             number("steps_per_epoch"), world_of(json)};
  if (std::ranges::any_of(numbers, [](int64_t n) { return n < 0; }) || numbers[0] > numbers[1]) {
    throw std::runtime_error("its numbers of steps and rows are impossible");
  }
}

// Returns for every step first the rows of `a`, then those of `b`, as far as both have kept them.
std::vector<RowRecord> interleave(const ReceiptData& a, const ReceiptData& b) {
  std::vector<RowRecord> rows;
  size_t at_a = 0, at_b = 0;
  for (size_t i = 0; i < a.steps.size(); ++i) {
    const size_t end_a = at_a + a.steps[i].rows, end_b = at_b + b.steps[i].rows;
    if (end_a > a.rows.size() || end_b > b.rows.size()) break;
    rows.insert(rows.end(), a.rows.begin() + at_a, a.rows.begin() + end_a);
    rows.insert(rows.end(), b.rows.begin() + at_b, b.rows.begin() + end_b);
    at_a = end_a;
    at_b = end_b;
  }
  return rows;
}

void add_part(ReceiptData& all, ReceiptData part, const std::filesystem::path& path) {
  if (part.first_step != all.first_step ||
      part.json.at("fingerprint") != all.json.at("fingerprint")) {
    throw std::runtime_error(path.string() + " is not of the same run as rank 0's receipt");
  }
  // Ranks save at different times.
  const size_t steps = std::min(all.steps.size(), part.steps.size());
  all.steps.resize(steps);
  part.steps.resize(steps);
  all.rows = interleave(all, part);
  for (size_t i = 0; i < steps; ++i) {
    StepRecord& sum = all.steps[i];
    sum.digest += part.steps[i].digest;
    sum.epoch_sum.low += part.steps[i].epoch_sum.low;
    sum.epoch_sum.high += part.steps[i].epoch_sum.high;
    sum.rows += part.steps[i].rows;
  }
}

}  // namespace

ReceiptPaths::ReceiptPaths(const std::filesystem::path& directory, int rank) {
  const std::string part = rank == 0 ? "" : ".rank" + std::to_string(rank);
  json = directory / ("receipt" + part + ".json");
  steps = directory / ("receipt_steps" + part + ".bin");
  rows = directory / ("receipt_rows" + part + ".bin");
}

ReceiptData read_receipt_part(const ReceiptPaths& paths) {
  ReceiptData data;
  const std::string path = paths.json.string();
  data.json = read_json_file<nlohmann::ordered_json>(path, [](nlohmann::ordered_json json) {
    check_fields(json);
    return json;
  });
  data.first_step = data.json.at("first_step");
  const Step next_step = data.json.at("next_step");
  data.steps =
      read_records<StepRecord>(paths.steps, static_cast<size_t>(next_step - data.first_step));
  data.rows = read_records<RowRecord>(paths.rows, data.json.at("rows_kept").get<size_t>());
  return data;
}

ReceiptData read_receipt(const std::filesystem::path& directory) {
  const bool is_file = directory.extension() == ".json";
  const std::filesystem::path folder = is_file ? directory.parent_path() : directory;
  ReceiptData all = read_receipt_part(ReceiptPaths(folder, 0));
  const int world = world_of(all.json);
  for (int rank = 1; rank < world; ++rank) {
    const ReceiptPaths paths(folder, rank);
    add_part(all, read_receipt_part(paths), paths.json);
  }
  return all;
}

void add_step(std::vector<EpochDigest>& epochs, const StepRecord& step, int64_t steps_per_epoch) {
  if (epochs.empty() || epochs.back().epoch != step.epoch) {
    epochs.push_back({.epoch = step.epoch, .digest = {}});
  }
  EpochDigest& epoch = epochs.back();
  epoch.steps += 1;
  epoch.rows += step.rows;
  epoch.digest.low += step.epoch_sum.low;
  epoch.digest.high += step.epoch_sum.high;
  epoch.complete = epoch.steps == steps_per_epoch;
}

std::vector<EpochDigest> sum_epochs(const std::vector<StepRecord>& steps, int64_t steps_per_epoch) {
  std::vector<EpochDigest> epochs;
  for (const StepRecord& step : steps) add_step(epochs, step, steps_per_epoch);
  return epochs;
}

std::string to_string(const Digest128& digest) { return hex64(digest.high) + hex64(digest.low); }

}  // namespace stoker
