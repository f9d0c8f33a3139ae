#include "pipeline/receipt/diff.h"

#include <algorithm>
#include <unordered_map>

#include "pipeline/receipt/files.h"

namespace stoker {
namespace {

// A receipt, with tables for the comparison.
struct Side {
  explicit Side(const std::filesystem::path& path) : data(read_receipt(path)) {
    epochs = sum_epochs(data.steps, data.json.at("steps_per_epoch"));
    int64_t row = 0;
    for (const StepRecord& step : data.steps) {
      first_row.push_back(row);
      row += step.rows;
    }
    first_row.push_back(row);
  }
  const EpochDigest* find(int64_t epoch) const {
    for (const EpochDigest& each : epochs) {
      if (each.epoch == epoch) return &each;
    }
    return nullptr;
  }
  // Returns the index in data.steps of the epoch's first step.
  size_t first_step(int64_t epoch) const {
    return static_cast<size_t>(
        std::find_if(data.steps.begin(), data.steps.end(),
                     [&](const StepRecord& step) { return step.epoch == epoch; }) -
        data.steps.begin());
  }
  // Returns the rows of steps [begin, end); empty if they were not kept.
  std::span<const RowRecord> rows(size_t begin, size_t end) const {
    if (first_row[end] > static_cast<int64_t>(data.rows.size())) return {};
    return std::span(data.rows).subspan(first_row[begin], first_row[end] - first_row[begin]);
  }
  bool rows_known(size_t end) const {
    return first_row[end] <= static_cast<int64_t>(data.rows.size());
  }

  ReceiptData data;
  std::vector<EpochDigest> epochs;
  std::vector<int64_t> first_row;  // per step, and one more at the end
};

std::string header_differences(const Side& a, const Side& b) {
  std::string text;
  const auto compare = [&](const std::string& name, const auto& x, const auto& y) {
    if (x != y) text += "\n  " + name + ": " + x.dump() + " and " + y.dump();
  };
  for (const char* key : {"stoker", "fingerprint", "seed", "global_batch"}) {
    compare(key, a.data.json.at(key), b.data.json.at(key));
  }
  for (const char* group : {"policies", "libraries"}) {
    const auto& other = b.data.json.at(group);
    for (const auto& [key, value] : a.data.json.at(group).items()) {
      compare(key, value, other.value(key, nlohmann::ordered_json()));
    }
  }
  return text.empty() ? text : "\nthe receipts differ in" + text;
}

// Returns the sample of the first row that differs. A row that only one side has (the sample was
// bad on the other side) shifts the rest; then it returns the sample that the other side lacks.
int64_t first_difference(std::span<const RowRecord> a, std::span<const RowRecord> b) {
  const auto [at_a, at_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (at_a == a.end()) return at_b == b.end() ? -1 : int64_t{at_b->id};
  const uint32_t id = at_a->id;
  const bool in_both =
      std::any_of(at_b, b.end(), [&](const RowRecord& row) { return row.id == id; });
  return in_both && at_b->id != id ? at_b->id : id;
}

// For runs with the same global batch: the same rows must be in the same steps.
bool compare_steps(const Side& a, const Side& b, int64_t epoch, ReceiptDifference& found) {
  const Step offset = b.data.first_step - a.data.first_step;  // index in a - index in b
  for (size_t i = a.first_step(epoch); i < a.data.steps.size(); ++i) {
    if (a.data.steps[i].epoch != epoch) return true;
    const int64_t j = static_cast<int64_t>(i) - offset;
    if (j < 0) continue;
    if (j >= static_cast<int64_t>(b.data.steps.size())) return true;
    const StepRecord& x = a.data.steps[i];
    const StepRecord& y = b.data.steps[j];
    if (x.digest == y.digest && x.rows == y.rows) continue;
    found.step = a.data.first_step + static_cast<Step>(i);
    if (!a.rows_known(i + 1) || !b.rows_known(j + 1)) return false;
    const auto rows_a = a.rows(i, i + 1), rows_b = b.rows(j, j + 1);
    found.sample = first_difference(rows_a, rows_b);
    return false;
  }
  return true;
}

// For different batch sizes: finds the first sample in a's order that differs in b.
bool compare_samples(const Side& a, const Side& b, const EpochDigest& x, const EpochDigest& y,
                     ReceiptDifference& found) {
  const bool both_complete = x.complete && y.complete;
  if (both_complete && x.rows == y.rows && x.digest == y.digest) return true;
  const size_t begin_a = a.first_step(x.epoch), begin_b = b.first_step(x.epoch);
  const size_t end_a = begin_a + x.steps, end_b = begin_b + y.steps;
  if (!a.rows_known(end_a) || !b.rows_known(end_b)) return !both_complete;
  const auto rows_a = a.rows(begin_a, end_a), rows_b = b.rows(begin_b, end_b);
  std::unordered_map<uint32_t, uint32_t> of_b;
  for (const RowRecord& row : rows_b) of_b.emplace(row.id, row.digest);
  size_t step = begin_a;
  for (size_t i = 0; i < rows_a.size(); ++i) {
    while (a.first_row[begin_a] + static_cast<int64_t>(i) >= a.first_row[step + 1]) ++step;
    const auto other = of_b.find(rows_a[i].id);
    const bool missing = other == of_b.end();
    if (missing ? !both_complete : other->second == rows_a[i].digest) continue;
    found.step = a.data.first_step + static_cast<Step>(step);
    found.sample = rows_a[i].id;
    return false;
  }
  if (!both_complete) return true;
  for (const RowRecord& row : rows_a) of_b.erase(row.id);
  if (!of_b.empty()) found.sample = of_b.begin()->first;
  return false;
}

std::string describe(const ReceiptDifference& found, int64_t epochs, int64_t rows) {
  if (found.same) {
    return "same: " + std::to_string(epochs) + " common epochs, " + std::to_string(rows) +
           " samples of the first run in them";
  }
  return "they first differ in epoch " + std::to_string(found.epoch) +
         (found.step < 0 ? "" : ", step " + std::to_string(found.step)) +
         (found.sample < 0 ? ", sample unknown (a receipt keeps no digests of these rows)"
                           : ", sample " + std::to_string(found.sample));
}

}  // namespace

ReceiptDifference receipt_diff(const std::filesystem::path& path_a,
                               const std::filesystem::path& path_b) {
  const Side a(path_a), b(path_b);
  const bool same_steps = a.data.json.at("global_batch") == b.data.json.at("global_batch");
  ReceiptDifference found;
  int64_t epochs = 0, rows = 0;
  for (const EpochDigest& x : a.epochs) {
    const EpochDigest* y = b.find(x.epoch);
    if (y == nullptr) continue;
    ++epochs;
    rows += x.rows;
    found.same =
        same_steps ? compare_steps(a, b, x.epoch, found) : compare_samples(a, b, x, *y, found);
    if (found.same) continue;
    found.epoch = x.epoch;
    break;
  }
  found.text = describe(found, epochs, rows) + header_differences(a, b);
  return found;
}

}  // namespace stoker
