// A receipt's three files: std::runtime_error, or a comparison with itself that finds no
// difference. Input: (receipt_steps.bin, receipt_rows.bin, receipt.json).
#include <cstdlib>
#include <stdexcept>

#include "pipeline/receipt/diff.h"
#include "tests/fuzz/fuzz_parts.h"
#include "tests/support/temp_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  static const TempFolder first, folder;
  static bool has_first = false;  // the first readable one; all others are compared with it
  const FuzzParts parts = split_fuzz_parts(data, size);
  const auto write_to = [&](const TempFolder& to) {
    to.write("receipt_steps.bin", parts[0]);
    to.write("receipt_rows.bin", parts[1]);
    to.write("receipt.json", parts[2]);
  };
  write_to(folder);
  try {
    if (!receipt_diff(folder.path(), folder.path()).same) std::abort();
    if (!has_first) write_to(first);
    has_first = true;
    receipt_diff(first.path(), folder.path());
    receipt_diff(folder.path(), first.path());
  } catch (const std::runtime_error&) {
  }
  return 0;
}
