#include "pipeline/source/format/object_entry.h"

#include <algorithm>

#include "pipeline/files/invalid_field.h"
#include "pipeline/source/format/text_value.h"

namespace stoker {
namespace {

// As in python/stoker/_huggingface.py, which has those of columns of `datasets`.
constexpr ObjectName kObjectFields[] = {
    {"bbox", ObjectEntry::boxes, 0},
    {"boxes", ObjectEntry::boxes, 1},
    {"category", ObjectEntry::labels, 0},
    {"label", ObjectEntry::labels, 1},
    {"labels", ObjectEntry::labels, 2},
    {"category_id", ObjectEntry::labels, 3},
    {"categories", ObjectEntry::labels, 4},
    {"id", ObjectEntry::ids, 0},
    {"ids", ObjectEntry::ids, 1},
    {"bbox_id", ObjectEntry::ids, 2},
    {"area", ObjectEntry::area, 0},
    {"iscrowd", ObjectEntry::iscrowd, 0},
    {"is_crowd", ObjectEntry::iscrowd, 1},
    {"keypoints", ObjectEntry::keypoints, 0},
    {"segmentation", ObjectEntry::masks, 0},
};

constexpr const char* kEntryWords[] = {"boxes",   "labels",    "ids",  "area",
                                       "iscrowd", "keypoints", "masks"};

[[noreturn]] void refuse(const std::string& text, const std::string& what) {
  throw InvalidField("SourceOptions", "objects_from", " is \"" + text + "\", which " + what);
}

// "category" or "labels=category".
ObjectColumn object_column(const std::string& part, const std::string& text) {
  const size_t equals = part.find('=');
  const std::string word = part.substr(0, equals);
  const ObjectName* const name = object_name(word);
  if (name == nullptr || name->entry == ObjectEntry::keypoints ||
      name->entry == ObjectEntry::masks) {
    refuse(text, "has " + quoted_name(word) + ", and the columns of objects are boxes, labels, " +
                     "ids, area and iscrowd (or BOXES as in boxes=BOXES)");
  }
  return {name->entry, equals == std::string::npos ? word : part.substr(equals + 1)};
}

}  // namespace

const ObjectName* object_name(std::string_view field) {
  const auto* const found = std::ranges::find(kObjectFields, field, &ObjectName::name);
  return found == std::end(kObjectFields) ? nullptr : found;
}

std::string fields_of(ObjectEntry wanted) {
  std::string text;
  for (const ObjectName& each : kObjectFields) {
    if (each.entry == wanted) text.append(text.empty() ? "" : ", ").append(each.name);
  }
  return text;
}

const char* word_of(ObjectEntry entry) { return kEntryWords[static_cast<size_t>(entry)]; }

std::vector<ObjectColumn> object_columns(const std::string& text) {
  if (text.find_first_of(",=") == std::string::npos) return {};
  std::vector<ObjectColumn> columns;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    columns.push_back(object_column(text.substr(at, end - at), text));
    at = end + 1;
  }
  for (const ObjectEntry needed : {ObjectEntry::boxes, ObjectEntry::labels}) {
    const auto count = std::ranges::count(columns, needed, &ObjectColumn::entry);
    if (count == 0) refuse(text, std::string("names no ") + word_of(needed));
  }
  for (const ObjectColumn& column : columns) {
    if (std::ranges::count(columns, column.entry, &ObjectColumn::entry) > 1) {
      refuse(text, std::string("names the ") + word_of(column.entry) + " twice");
    }
  }
  return columns;
}

}  // namespace stoker
