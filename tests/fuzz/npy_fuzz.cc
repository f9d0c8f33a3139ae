// NumPy's files of one array: a reason, or numbers that fill the shape and are in the file.
#include <cstdlib>
#include <string>

#include "pipeline/source/format/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  FoundTarget found;
  const std::string problem = read_npy({data, size}, found);
  if (found.size() > size) std::abort();
  if (!problem.empty()) return 0;
  size_t numbers = 1;
  for (const int64_t extent : found.shape) numbers *= static_cast<size_t>(extent);
  if (numbers != found.size()) std::abort();
  return 0;
}
