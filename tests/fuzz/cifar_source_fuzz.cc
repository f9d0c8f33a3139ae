// CIFAR's binary files and class names: std::runtime_error, or a source whose every record can be
// read. Input: (file name, class names, records); the name only selects one of the two layouts.
#include <cstdlib>
#include <stdexcept>

#include "pipeline/source/cifar_source.h"
#include "tests/fuzz/fuzz_parts.h"
#include "tests/support/temp_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  static const TempFolder ten, hundred;
  const FuzzParts parts = split_fuzz_parts(data, size);
  const bool is_hundred = parts[0].size() % 2 == 1;
  const TempFolder& folder = is_hundred ? hundred : ten;
  folder.write(is_hundred ? "fine_label_names.txt" : "batches.meta.txt", parts[1]);
  folder.write(is_hundred ? "test.bin" : "test_batch.bin", parts[2]);
  try {
    const std::unique_ptr<Source> source = make_cifar_source(folder.path(), Split::test);
    std::vector<uint8_t> buffer;
    std::span<const uint8_t> bytes;
    int64_t sum = 0;
    for (SampleId id = 0; id < source->size(); ++id) {
      if (!source->read(id, buffer, bytes).ok || bytes.size() != 3072) std::abort();
      for (const uint8_t byte : bytes) sum += byte;
      const auto classes = static_cast<int>(source->class_names().size());
      if (source->label(id) < 0 || source->label(id) >= classes) std::abort();
      if (source->name(id).empty()) std::abort();
    }
    if (source->size() <= 0 || sum < 0) std::abort();
  } catch (const std::runtime_error&) {
  }
  return 0;
}
