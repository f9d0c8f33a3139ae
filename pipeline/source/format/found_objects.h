// The objects on the picture of one sample, as a format found them: JSON, or a column for each of
// their entries. A value; a scan keeps one and fills it again for each sample.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decode/image.h"
#include "pipeline/annotation/box_format.h"
#include "pipeline/source/format/found_target.h"
#include "pipeline/source/format/object_entry.h"

namespace stoker {

// SourceOptions::objects_from without its suffix, and what the suffix says.
struct ObjectField {
  std::string field;  // "": objects are not asked for
  BoxFormat boxes = BoxFormat::xywh;
  bool is_wanted() const { return !field.empty(); }
};

struct FoundObjects {
  // One value for each object: a number, or a box's four.
  struct Column {
    ObjectEntry entry{};
    FoundTarget numbers{};
    // In place of numbers: names of classes, or the files of masks (PNG).
    std::vector<std::string> texts{};
  };

  std::string json{};                    // all of the objects; "": `columns` has them
  std::vector<std::string> json_path{};  // the fields in which they are
  std::vector<Column> columns{};
  std::optional<BoxFormat> box_format{};  // none: what ObjectField says
  int64_t picture_id = -1;
  Size size{};            // of the picture; {}: the record does not say
  std::string problem{};  // what is wrong with this sample's; "": nothing so far
};

}  // namespace stoker
