// Reads those bytes of a sample that its row shows, where its seek index says which these are, and
// the stamp says that its file did not change since the index was made.
//
// Owner: a call of RowFiller. Threads: one at a time. Errors: returns false; the whole sample is to
// be read then.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/file_pieces.h"
#include "decode/image_decoder.h"
#include "decode/jpeg/crop_bytes.h"
#include "decode/jpeg/seek_index.h"
#include "pipeline/seek_index/file.h"
#include "pipeline/source.h"

namespace stoker {

class SamplePieces {
 public:
  // Returns false if there is no sound index or no stamp, if the image is turned, or if the file is
  // small. `stored` must live as long as this.
  bool open(const StoredIndex& stored, ExifPolicy exif);
  Size image_size() const { return index_.file().size; }
  // Finds which bytes show `needed`, a box of the image. Returns false if these are nearly all, or
  // more than the index knows of. REQUIRES: open().
  bool find(Box needed) { return find_crop_bytes(index_, needed, bytes_); }
  // Reads them into `buffer`, which grows and never shrinks. REQUIRES: find().
  bool read(const Source& source, SampleId id, MayWait may_wait, std::vector<uint8_t>& buffer,
            FilePieces& pieces) const;

 private:
  FileStamp stamp_;
  SeekIndex index_;
  CropBytes bytes_;
};

}  // namespace stoker
