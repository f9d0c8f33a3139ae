// Compares two receipts: where do two runs differ first? Threads: any. Errors: std::runtime_error
// with the path of a receipt that cannot be read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "staging/batch_layout.h"

namespace stoker {

struct ReceiptDifference {
  bool same = true;  // no difference in what both runs delivered
  int64_t epoch = -1;
  Step step = -1;       // of the first run; -1 if unknown
  int64_t sample = -1;  // low 32 bits of its id; -1 if unknown
  std::string text;     // for people: the result, then the differences between the heads
};

// `a` and `b` are directories, or the paths of the receipt.json in them. With the same global batch
// every step is compared; with different ones the epochs, and the samples of the first epoch that
// differs.
ReceiptDifference receipt_diff(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace stoker
