// The fields of objects in records, by the names that data sets give them: one table for JSON,
// Parquet's structs and the columns of shards. Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

// The entries of stoker.with_annotations().
enum class ObjectEntry : uint8_t { boxes, labels, ids, area, iscrowd, keypoints, masks };

// A name of a field. Where an object has several for one entry, the lowest rank counts.
struct ObjectName {
  std::string_view name;
  ObjectEntry entry{};
  uint8_t rank = 0;
};
// Returns null if the name is none of the table's.
const ObjectName* object_name(std::string_view field);
// For messages: "labels", and "bbox, boxes".
const char* word_of(ObjectEntry entry);
std::string fields_of(ObjectEntry entry);

// A column that has one entry of all objects of a sample.
struct ObjectColumn {
  ObjectEntry entry{};
  std::string name;
};
// Returns the columns that "bbox,category" or "boxes=corners,labels=kinds" names; empty if the text
// is the name of one field that has all. Throws InvalidField for a name that is none of
// the table's, without boxes or labels, and for an entry that comes twice.
std::vector<ObjectColumn> object_columns(const std::string& text);

}  // namespace stoker
