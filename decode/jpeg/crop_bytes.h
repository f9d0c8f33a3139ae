// Which bytes of a JPEG file a crop needs, by the file's seek index: its headers, and the rows of
// MCUs from the crop's first to its last. So a crop of a large photograph is read from storage
// without the rest of it.
//
// Owner: none. Threads: any. Errors: none; where less is read than the decoder turns out to need,
// CropDecoder does not take the pieces, and the whole file has to be read.
#pragma once

#include <cstddef>

#include "decode/image.h"
#include "decode/jpeg/seek_index.h"

namespace stoker {

// Bytes [begin, end) of a file.
struct ByteRange {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
  bool operator==(const ByteRange&) const = default;
};

// Whole blocks of kSeekBlock bytes. `body` equals `head` if what lies between them is not worth
// leaving out.
struct CropBytes {
  ByteRange head;
  ByteRange body;
  size_t size() const { return head.size() + (body == head ? 0 : body.size()); }
};

// Less is not worth a second request to storage, nor giving up the check of the whole file.
inline constexpr size_t kMinUnreadBytes = size_t{32} << 10;

// Finds the bytes for the rows of `shown`, a box of the stored image (source_box of crop_spec.h).
// Returns false if the index does not have all of them, or if fewer than kMinUnreadBytes could be
// left out.
bool find_crop_bytes(const SeekIndex& index, Box shown, CropBytes& bytes);

}  // namespace stoker
