// The index of a data set in blobs. The seal of its table is corrected first (it guards against
// accidents, not against forgery): what BlobIndex accepts then must be safe to use.
#include <cstdlib>

#include "pipeline/source/blob/blob_index.h"
#include "tests/support/sealed_again.h"
#include "tests/support/temp_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  static const TempFolder folder;
  const auto index = BlobIndex::open(
      folder.write("index", sealed_again({reinterpret_cast<const char*>(data), size})));
  if (index == nullptr) return 0;
  uint64_t sum = 0;
  const SampleId step = index->size() / 1000 + 1;
  for (SampleId id = 0; id < index->size(); id += step) {
    const BlobIndex::Found found = index->find(id);
    if (found.segment == nullptr) continue;  // its seal does not hold
    if (found.segment->blob >= static_cast<int64_t>(index->table().blobs.size())) std::abort();
    for (const char c : index->name(found)) sum += static_cast<uint8_t>(c);
    for (const char c : found.targets) sum += static_cast<uint8_t>(c);
    for (const char c : found.objects) sum += static_cast<uint8_t>(c);
    for (int64_t column = 0; column < index->table().varying_columns(); ++column) {
      for (const char c : index->varying(found, column).bytes) sum += static_cast<uint8_t>(c);
    }
    sum += found.entry.place + found.entry.length;
  }
  if (sum == 1 && index->size() == 0) std::abort();
  return 0;
}
