#include <algorithm>

#include "pipeline/files/printable_name.h"
#include "pipeline/source/format/parquet_columns.h"

namespace stoker {
namespace {

bool is_below(const ParquetField& field, const ParquetField& group) {
  return field.names.size() >= group.names.size() &&
         std::equal(group.names.begin(), group.names.end(), field.names.begin());
}

// Returns which entry of objects a column inside of a group has; null: none.
const ObjectName* name_inside(const ParquetField& column, const ParquetField& group) {
  for (size_t i = group.names.size(); i < column.names.size(); ++i) {
    if (const ObjectName* name = object_name(column.names[i])) return name;
    if (!is_list_name(column.names[i])) return nullptr;
  }
  return nullptr;
}

// "lists of lists of DOUBLE"
std::string describe_values(ParquetField column) {
  std::string lists;
  for (int i = 0; i < column.max_repetition; ++i) lists += "lists of ";
  column.repeated = false;
  return lists + column.describe();
}

class ObjectColumns {
 public:
  ObjectColumns(const BlobReader& blob, const ParquetFooter& footer)
      : blob_(blob), footer_(footer), ranks_(7, 255) {}

  // Takes the column; of several for one entry, the one of the lowest rank.
  void take(const ParquetField& column, ObjectEntry entry, uint8_t rank) {
    const int levels = entry == ObjectEntry::boxes ? 2 : 1;
    const bool fits = number_kind(column) && column.max_repetition == levels;
    // Names of objects that are texts say nothing of where they are.
    if (!fits && entry == ObjectEntry::ids) return;
    if (entry == ObjectEntry::keypoints || entry == ObjectEntry::masks) return;
    if (!fits) {
      blob_.fail(footer_.begin, "the column " + printable_name(column.path()) + " has " +
                                    describe_values(column) + ", and " + word_of(entry) +
                                    (levels == 2 ? " of objects are lists of lists of 4 numbers"
                                                 : " of objects are lists of numbers"));
    }
    uint8_t& best = ranks_[static_cast<size_t>(entry)];
    if (rank >= best) return;
    best = rank;
    std::erase_if(columns_, [entry](const auto& each) { return each.entry == entry; });
    columns_.push_back({entry, &column, level_of_list(footer_, column)});
  }

  std::vector<ParquetObjectColumn> finish(const std::string& name) {
    for (const ObjectEntry needed : {ObjectEntry::boxes, ObjectEntry::labels}) {
      if (ranks_[static_cast<size_t>(needed)] < 255) continue;
      blob_.fail(footer_.begin, "the column " + printable_name(name) + " has no " +
                                    word_of(needed) + " of objects (" + fields_of(needed) +
                                    ") inside: " + list_fields(footer_));
    }
    const ParquetField* const picture = find_field(footer_, "image_id");
    if (picture != nullptr && picture->is_plain_integer() && !picture->repeated) {
      columns_.push_back({std::nullopt, picture, 0});
    }
    return std::move(columns_);
  }

 private:
  const BlobReader& blob_;
  const ParquetFooter& footer_;
  std::vector<uint8_t> ranks_;  // of the columns, by entry; 255: there is none
  std::vector<ParquetObjectColumn> columns_;
};

const ParquetField& existing_field(const BlobReader& blob, const ParquetFooter& footer,
                                   const std::string& name) {
  if (const ParquetField* field = find_field(footer, name)) return *field;
  blob.fail(footer.begin,
            "there is no column " + printable_name(name) + " for objects: " + list_fields(footer));
}

}  // namespace

int level_of_list(const ParquetFooter& footer, const ParquetField& column) {
  int level = column.max_definition;
  for (const ParquetField& field : footer.fields) {
    if (is_below(column, field) && field.max_repetition == 1) {
      level = std::min(level, field.max_definition);
    }
  }
  return level;
}

std::vector<ParquetObjectColumn> choose_objects(const BlobReader& blob, const ParquetFooter& footer,
                                                const ObjectField& wanted) {
  ObjectColumns columns(blob, footer);
  const std::vector<ObjectColumn> own = object_columns(wanted.field);
  for (const ObjectColumn& each : own) {
    const ParquetField& list = existing_field(blob, footer, each.name);
    for (const ParquetField& column : footer.fields) {
      if (column.column >= 0 && is_below(column, list)) columns.take(column, each.entry, 0);
    }
  }
  if (own.empty()) {
    const ParquetField& group = existing_field(blob, footer, wanted.field);
    for (const ParquetField& column : footer.fields) {
      if (column.column < 0 || !is_below(column, group)) continue;
      if (const ObjectName* name = name_inside(column, group)) {
        columns.take(column, name->entry, name->rank);
      }
    }
  }
  return columns.finish(wanted.field);
}

}  // namespace stoker
