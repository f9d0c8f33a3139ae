// The files of a receipt: their names, how to read them (the parts of all ranks added up), and
// sums. See receipt.h for their content. Threads: any. Errors: std::runtime_error with the path.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pipeline/receipt/receipt.h"

namespace stoker {

struct ReceiptPaths {
  ReceiptPaths(const std::filesystem::path& directory, int rank);
  std::filesystem::path json, steps, rows;
};

// One rank's part, or all parts added up.
struct ReceiptData {
  nlohmann::ordered_json json;  // rank 0's
  Step first_step = 0;
  std::vector<StepRecord> steps;  // from first_step on
  std::vector<RowRecord> rows;    // of the first steps, as far as they were kept
};

ReceiptData read_receipt_part(const ReceiptPaths& paths);
// `directory` may also be the path of the receipt.json in it.
ReceiptData read_receipt(const std::filesystem::path& directory);

std::vector<EpochDigest> sum_epochs(const std::vector<StepRecord>& steps, int64_t steps_per_epoch);
void add_step(std::vector<EpochDigest>& epochs, const StepRecord& step, int64_t steps_per_epoch);

}  // namespace stoker
