#include "pipeline/source/annotated/annotation_table.h"

#include <limits>

namespace stoker {

void put_kinds(const AnnotationInfo& info, RecordWriter& out) {
  out.put(info.class_names);
  out.put(info.keypoint_names);
  out.put(std::vector<int64_t>{info.objects, info.rotated, info.masks, info.keypoints,
                               info.label_image, info.label_bytes});
}

bool get_kinds(RecordReader& in, AnnotationInfo& info) {
  std::vector<int64_t> kinds;
  if (!in.get(info.class_names) || !in.get(info.keypoint_names) || !in.get(kinds)) return false;
  if (kinds.size() != 6 || kinds[3] < 0 || kinds[3] > std::numeric_limits<int>::max()) return false;
  info.objects = kinds[0] != 0;
  info.rotated = kinds[1] != 0;
  info.masks = kinds[2] != 0;
  info.keypoints = static_cast<int>(kinds[3]);
  info.label_image = kinds[4] != 0;
  info.label_bytes = kinds[5] == 4 ? 4 : 1;
  return true;
}

std::vector<char> bytes_of_table(const AnnotationTable& table) {
  RecordWriter out;
  out.put(table.key);
  out.put(table.label_root);
  put_kinds(table.info, out);
  out.put(std::vector<uint64_t>{table.info.digest, table.pictures, table.piece_bytes,
                                table.name_bytes, table.slots, table.index_seal});
  return out.bytes();
}

bool read_table(std::string_view bytes, AnnotationTable& table) {
  RecordReader in(bytes);
  std::vector<uint64_t> sizes;
  const bool is_read = in.get(table.key) && in.get(table.label_root) && get_kinds(in, table.info) &&
                       in.get(sizes) && in.at_end() && sizes.size() == 6;
  if (!is_read) return false;
  table.info.digest = sizes[0];
  table.pictures = sizes[1];
  table.piece_bytes = sizes[2];
  table.name_bytes = sizes[3];
  table.slots = sizes[4];
  table.index_seal = sizes[5];
  return true;
}

}  // namespace stoker
