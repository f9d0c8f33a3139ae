// Holds two receipts against each other: where do two runs part? Threads: any. Errors:
// std::runtime_error with the path of a receipt that cannot be read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "staging/batch_layout.h"

namespace stoker {

struct ReceiptDifference {
  bool same = true;  // no difference in what both delivered
  int64_t epoch = -1;
  Step step = -1;       // of the first run; -1 if unknown
  int64_t sample = -1;  // low 32 bits of its id; -1 if unknown
  std::string text;     // for people: the answer, then how the heads of the receipts differ
};

// `a` and `b`: directories, or the paths of the receipt.json in them. With the same global batch
// every step is compared; with different ones the epochs, and the samples of the first that
// differs.
ReceiptDifference receipt_diff(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace stoker
