#include "pipeline/source/format/parquet.h"

#include <algorithm>
#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>

#include "pipeline/files/printable_name.h"
#include "pipeline/source/format/parquet_columns.h"
#include "pipeline/source/format/parquet_footer.h"

namespace stoker {
namespace {

// A page of packed images is unpacked into memory. Row groups of 1,000 large photographs are not
// rare; labels take a few bytes each.
constexpr int64_t kLargestImagePage = int64_t{1} << 30;
constexpr int64_t kLargestLabelPage = int64_t{256} << 20;

using ColumnNames = std::initializer_list<const char*>;
constexpr ColumnNames kImageColumns = {"image", "img",  "jpg",     "jpeg",
                                       "png",   "webp", "picture", "pixels"};
constexpr ColumnNames kLabelColumns = {"label", "labels", "class", "fine_label", "cls"};

// Input and result of the choice of a column.
struct ColumnWish {
  const std::string& name;  // "": by itself
  ColumnNames usual;
  const char* what;  // "images"
};

const ParquetField* find_usual_field(const ParquetFooter& footer, const ColumnWish& wish) {
  for (const char* name : wish.usual) {
    if (const ParquetField* field = find_field(footer, name)) return field;
  }
  return nullptr;
}

[[noreturn]] void fail_without(const BlobReader& blob, const ParquetFooter& footer,
                               const ColumnWish& wish) {
  if (!wish.name.empty()) {
    blob.fail(footer.begin, "there is no column " + printable_name(wish.name) + " for " +
                                wish.what + ": " + list_fields(footer));
  }
  std::string tried;
  for (const char* name : wish.usual) tried += (tried.empty() ? "" : ", ") + std::string(name);
  blob.fail(footer.begin, std::string("no column has a usual name for ") + wish.what + " (" +
                              tried + "): " + list_fields(footer));
}

bool is_binary(const ParquetField& field) {
  return field.type == ParquetType::byte_array && !field.is_text() && !field.repeated;
}

// Returns the field `bytes` inside a struct, or null.
const ParquetField* bytes_inside(const ParquetFooter& footer, const ParquetField& group) {
  if (group.type != ParquetType::group) return nullptr;
  std::vector<std::string> names = group.names;
  names.push_back("bytes");
  for (const ParquetField& field : footer.fields) {
    if (field.names == names) return is_binary(field) ? &field : nullptr;
  }
  return nullptr;
}

// Returns the only struct with bytes at the top, or null.
const ParquetField* find_image_struct(const ParquetFooter& footer) {
  const ParquetField* only = nullptr;
  for (const ParquetField& field : footer.fields) {
    if (field.names.size() != 1 || bytes_inside(footer, field) == nullptr) continue;
    if (only != nullptr) return nullptr;
    only = &field;
  }
  return only;
}

const ParquetField& choose_images(const BlobReader& blob, const ParquetFooter& footer,
                                  const std::string& name) {
  const ColumnWish wish = {name, kImageColumns, "images"};
  const ParquetField* field =
      name.empty() ? find_usual_field(footer, wish) : find_field(footer, name);
  if (field == nullptr && name.empty()) field = find_image_struct(footer);
  if (field == nullptr) fail_without(blob, footer, wish);
  if (is_binary(*field)) return *field;
  if (const ParquetField* bytes = bytes_inside(footer, *field)) return *bytes;
  blob.fail(footer.begin, "the column " + printable_name(field->path()) + " is " +
                              field->describe() +
                              ", and images are binary values or a struct with binary `bytes`");
}

const ParquetField& choose_labels(const BlobReader& blob, const ParquetFooter& footer,
                                  const std::string& name) {
  const ColumnWish wish = {name, kLabelColumns, "labels"};
  const ParquetField* const field =
      name.empty() ? find_usual_field(footer, wish) : find_field(footer, name);
  if (field == nullptr) fail_without(blob, footer, wish);
  const bool fits = field->type == ParquetType::byte_array || field->is_plain_integer();
  if (fits && !field->repeated) return *field;
  blob.fail(footer.begin, "the column " + printable_name(field->path()) + " is " +
                              field->describe() + ", and labels are integers or text");
}

// Returns the only column inside a list, or null.
const ParquetField* column_inside(const ParquetFooter& footer, const ParquetField& list) {
  const ParquetField* only = nullptr;
  for (const ParquetField& field : footer.fields) {
    const bool is_inside = field.names.size() > list.names.size() &&
                           std::equal(list.names.begin(), list.names.end(), field.names.begin());
    if (!is_inside || field.column < 0) continue;
    if (only != nullptr) return nullptr;
    only = &field;
  }
  return only;
}

const ParquetField& choose_target(const BlobReader& blob, const ParquetFooter& footer,
                                  const TargetField& target) {
  const ParquetField* const field = find_field(footer, target.field);
  if (field == nullptr) fail_without(blob, footer, {target.field, {}, "targets"});
  const ParquetField* const column = field->is_list() ? column_inside(footer, *field) : field;
  const auto fits = [&] {
    return target.is_text() ? column->type == ParquetType::byte_array
                            : number_kind(*column).has_value();
  };
  if (column != nullptr && fits()) return *column;
  blob.fail(footer.begin, "the column " + printable_name(field->path()) + " is " +
                              field->describe() + ", and targets are " +
                              (target.is_text() ? "texts" : "numbers") + " or lists of them");
}

// A column with what is known of its chunks so far.
class ChosenColumn {
 public:
  ChosenColumn(const ParquetField& field, const char* missing, int64_t largest_page)
      : field_(field), column_{printable_name(field.path()), missing,
                               field.max_definition,         largest_page,
                               field.max_repetition,         field.type == ParquetType::boolean} {}

  const ParquetField& field() const { return field_; }
  const ParquetColumn& column() const { return column_; }
  // Returns the column's chunk in a row group, which lies before the footer.
  const ParquetChunk& chunk(const BlobReader& blob, const ParquetFooter& footer, size_t group) {
    const ParquetRowGroup& rows = footer.row_groups[group];
    const ParquetChunk& chunk = rows.columns[static_cast<size_t>(field_.column)];
    const std::string where = "column " + column_.name + " in row group " + std::to_string(group);
    if (chunk.elsewhere) blob.fail(footer.begin, where + " is in another file");
    if (chunk.encrypted) blob.fail(footer.begin, where + " is encrypted");
    if (chunk.values != rows.rows && !field_.repeated) {
      blob.fail(footer.begin, where + " has " + std::to_string(chunk.values) +
                                  " values, and the row group has " + std::to_string(rows.rows) +
                                  " rows");
    }
    // Chunks do not overlap; that also keeps a file from having one read again and again.
    if (chunk.begin > footer.begin || chunk.bytes > footer.begin - chunk.begin ||
        chunk.bytes > footer.begin - bytes_) {
      blob.fail(footer.begin, where + " has " + std::to_string(chunk.bytes) + " bytes at byte " +
                                  std::to_string(chunk.begin) + ", which the file has not");
    }
    bytes_ += chunk.bytes;
    return chunk;
  }

 private:
  const ParquetField& field_;
  const ParquetColumn column_;
  int64_t bytes_ = 0;  // of all chunks so far
};

struct ObjectColumnScan {
  ParquetObjectColumn chosen;
  ChosenColumn column;
  int64_t left;  // numbers that it may still have
};

class ParquetScan {
 public:
  ParquetScan(BlobReader& blob, const FieldChoice& fields, SampleSink& out)
      : blob_(blob),
        fields_(fields),
        out_(out),
        footer_(read_parquet_footer(blob)),
        images_(choose_images(blob, footer_, fields.image), "image bytes", kLargestImagePage),
        numbers_left_(fields.targets.size(), blob.size() * kMaxNumbersPerByte),
        found_(fields.targets.size()) {
    for (const TargetField& target : fields.targets) {
      targets_.emplace_back(choose_target(blob, footer_, target),
                            target.varies ? "value" : "target", kLargestLabelPage);
      const ParquetField& field = targets_.back().field();
      empty_below_.push_back(field.max_repetition > 0 ? level_of_list(footer_, field) : 0);
    }
    if (fields.objects.is_wanted()) {
      for (const ParquetObjectColumn& each : choose_objects(blob, footer_, fields.objects)) {
        add_object_column(each);
      }
    }
    if (fields.no_labels()) return;
    const ParquetField& label = choose_labels(blob, footer_, fields.label);
    labels_.emplace(label, "label", kLargestLabelPage);
    if (label.is_plain_integer()) tell_class_names(label);
  }

  void scan() {
    for (size_t i = 0; i < footer_.row_groups.size(); ++i) {
      if (footer_.row_groups[i].rows > 0) scan_row_group(i);
    }
  }

 private:
  void tell_class_names(const ParquetField& label) {
    const std::vector<std::string> names = class_names_of(footer_, label);
    if (!names.empty()) out_.set_class_names(names);
  }

  void add_object_column(const ParquetObjectColumn& chosen) {
    objects_.push_back(
        {chosen, {*chosen.field, "number", kLargestLabelPage}, blob_.size() * kMaxNumbersPerByte});
    if (!chosen.entry) return;
    found_objects_.columns.push_back({.entry = *chosen.entry});
    if (*chosen.entry != ObjectEntry::labels) return;
    const std::vector<std::string> names = class_names_of(footer_, *chosen.field);
    if (!names.empty()) out_.set_object_names(names);
  }

  void scan_row_group(size_t index) {
    const int64_t rows = footer_.row_groups[index].rows;
    const ParquetChunk& chunk = images_.chunk(blob_, footer_, index);
    ParquetImages images(blob_, images_.column(), chunk, first_row_);
    std::optional<ParquetLabels> labels;
    if (labels_) {
      labels.emplace(blob_, labels_->column(), labels_->field(),
                     labels_->chunk(blob_, footer_, index), first_row_, rows);
    }
    const auto numbers = numbers_of(index);
    const auto objects = objects_of(index);
    const int64_t found = images.scan(rows, [&](const FoundSample& place) {
      FoundSample sample = place;
      if (labels) sample.label = labels->next();
      for (size_t i = 0; i < numbers.size(); ++i) next_target(*numbers[i], i);
      sample.targets = found_;
      sample.objects = next_objects(objects);
      out_.add(sample);
    });
    if (found != rows) {
      blob_.fail(chunk.begin, "column " + images_.column().name + ": its pages have " +
                                  std::to_string(found) + " values, and the row group has " +
                                  std::to_string(rows) + " rows");
    }
    if (labels) labels->expect_end();
    for (const auto& target : numbers) target->expect_end();
    for (const auto& column : objects) column->expect_end();
    first_row_ += rows;
  }

  using Numbers = std::vector<std::unique_ptr<ParquetNumbers>>;

  // A column in a row group, with the numbers that it may still have.
  std::unique_ptr<ParquetNumbers> numbers_of(ChosenColumn& column, size_t group, int64_t& left) {
    return std::make_unique<ParquetNumbers>(blob_, column.column(), column.field(),
                                            column.chunk(blob_, footer_, group), first_row_,
                                            footer_.row_groups[group].rows, left);
  }

  // The targets of a row group.
  Numbers numbers_of(size_t group) {
    Numbers numbers;
    for (size_t i = 0; i < targets_.size(); ++i) {
      numbers.push_back(numbers_of(targets_[i], group, numbers_left_[i]));
    }
    return numbers;
  }

  Numbers objects_of(size_t group) {
    Numbers numbers;
    for (ObjectColumnScan& each : objects_) {
      numbers.push_back(numbers_of(each.column, group, each.left));
    }
    return numbers;
  }

  // Returns the objects of the next row; null if none are wanted.
  const FoundObjects* next_objects(const Numbers& numbers) {
    if (objects_.empty()) return nullptr;
    found_objects_.problem.clear();
    for (size_t i = 0, column = 0; i < objects_.size(); ++i) {
      const ParquetObjectColumn& chosen = objects_[i].chosen;
      FoundTarget& found = chosen.entry ? found_objects_.columns[column++].numbers : picture_id_;
      numbers[i]->next_objects(chosen.empty_below, found, found_objects_.problem);
      if (!chosen.entry && picture_id_.integers.size() == 1) {
        found_objects_.picture_id = picture_id_.integers[0];
      }
    }
    return &found_objects_;
  }

  void next_target(ParquetNumbers& values, size_t target) {
    if (fields_.targets[target].varies) {
      values.next_varying(empty_below_[target], found_[target]);
    } else {
      values.next(found_[target]);
    }
  }

  BlobReader& blob_;
  const FieldChoice& fields_;
  SampleSink& out_;
  const ParquetFooter footer_;
  ChosenColumn images_;
  std::optional<ChosenColumn> labels_;
  std::deque<ChosenColumn> targets_;
  std::deque<ObjectColumnScan> objects_;
  std::vector<int64_t> numbers_left_;  // that each target may still have
  std::vector<int> empty_below_;       // of each target: ParquetNumbers::next_varying()
  std::vector<FoundTarget> found_;     // of the row
  FoundObjects found_objects_;         // as well
  FoundTarget picture_id_;
  int64_t first_row_ = 0;  // of the row group
};

}  // namespace

void scan_parquet(BlobReader& blob, const FieldChoice& fields, SampleSink& out) {
  ParquetScan(blob, fields, out).scan();
}

}  // namespace stoker
