// TFRecord files: BlobError, or samples that lie in the file, one after the other. Input: (image
// field, label field and those of targets, file); the file is read as it is and with checksums that
// are right, because no mutation finds those.
#include <cstdlib>

#include "pipeline/source/format/crc32c.h"
#include "pipeline/source/format/tfrecord.h"
#include "tests/fuzz/fuzz_parts.h"
#include "tests/fuzz/fuzz_targets.h"
#include "tests/support/tfrecord_maker.h"

namespace stoker {
namespace {

void check_scan(const std::string& file, const FieldChoice& fields) {
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(file.data()), file.size());
  if (crc32c(bytes) != crc32c_by_table(bytes)) std::abort();
  // A header is before an image, and a checksum after it.
  check_fuzz_scan(scan_tfrecord, bytes, fields, 12, 4);
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  const FuzzParts parts = split_fuzz_parts(data, size);
  const FieldChoice fields = fuzz_choice(parts[0], parts[1]);
  std::string file(parts[2]);
  check_scan(file, fields);
  repair_checksums(file);
  check_scan(file, fields);
  return 0;
}
