// NumPy's files of one array, and a tensor "x" of a .safetensors file (nothing is both): a reason,
// or numbers that fill the shape and are in the file.
#include <cstdlib>
#include <string>

#include "pipeline/source/format/npy.h"
#include "pipeline/source/format/safetensors.h"

namespace {

void check(const std::string& problem, const stoker::FoundTarget& found, size_t size) {
  if (found.size() > size) std::abort();
  if (!problem.empty()) return;
  size_t numbers = 1;
  for (const int64_t extent : found.shape) numbers *= static_cast<size_t>(extent);
  if (numbers != found.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  FoundTarget found;
  check(read_npy({data, size}, found), found, size);
  check(read_safetensors({data, size}, "x", found), found, size);
  return 0;
}
