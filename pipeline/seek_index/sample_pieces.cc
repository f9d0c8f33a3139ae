#include "pipeline/seek_index/sample_pieces.h"

#include <span>

#include "pipeline/files/file_buffer.h"

namespace stoker {

bool SamplePieces::open(const StoredIndex& stored, ExifPolicy exif) {
  stamp_ = stored.stamp;
  return stamp_.is_known() && index_.open(stored.index) && index_.file().bytes > kMinUnreadBytes &&
         (exif != ExifPolicy::apply || index_.file().orientation == 1);
}

bool SamplePieces::read(const Source& source, SampleId id, MayWait may_wait,
                        std::vector<uint8_t>& buffer, FilePieces& pieces) const {
  grow_file_buffer(buffer, bytes_.size());
  const std::span<uint8_t> head(buffer.data(), bytes_.head.size());
  const bool is_one = bytes_.body == bytes_.head;
  const std::span<uint8_t> body =
      is_one ? head : std::span(buffer.data() + head.size(), bytes_.body.size());
  const BytePiece wanted[] = {{0, head}, {static_cast<int64_t>(bytes_.body.begin), body}};
  if (!source.storage().read_pieces(id, stamp_, std::span(wanted).first(is_one ? 1 : 2),
                                    may_wait)) {
    return false;
  }
  pieces.file_bytes = index_.file().bytes;
  pieces.head = head;
  pieces.body = body;
  pieces.body_at = bytes_.body.begin;
  return true;
}

}  // namespace stoker
