#include "pipeline/source/format/unpack.h"

#include "pipeline/source/format/snappy.h"

namespace stoker {

bool can_unpack(BlobStorage storage) {
  return storage == BlobStorage::snappy || (storage == BlobStorage::zstd && has_zstd());
}

std::string unpack(BlobStorage storage, std::span<const uint8_t> packed, std::span<uint8_t> out) {
  if (storage == BlobStorage::zstd) return unpack_zstd(packed, out, nullptr);
  return unpack_snappy(packed, out);
}

}  // namespace stoker
