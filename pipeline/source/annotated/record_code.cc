#include "pipeline/source/annotated/record_code.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <stdexcept>
#include <utility>

#include "decode/label_image.h"
#include "pipeline/annotation/run_lengths.h"
#include "pipeline/files/printable_name.h"
#include "pipeline/source/annotated/annotation_code.h"
#include "pipeline/source/annotated/check_annotations.h"
#include "pipeline/source/annotated/json_scanner.h"
#include "pipeline/source/annotated/object_scanner.h"
#include "pipeline/source/annotated/picture_code.h"
#include "pipeline/source/format/text_value.h"

namespace stoker {
namespace {

// An object with the text that its class may be.
struct RecordObject {
  ScannedObject scanned{};
  std::string class_text{};
  // The rank (ObjectName) of the field that each entry comes from; 9: from none yet.
  std::array<uint8_t, 7> ranks = {9, 9, 9, 9, 9, 9, 9};
};

// More objects on one picture are no data, and would need much more memory than their bytes.
constexpr size_t kMostObjects = 100'000;

// The number as a whole one; false if it is none.
bool is_whole(const FoundTarget& numbers, size_t i, int64_t& whole) {
  if (numbers.reals.empty()) {
    whole = numbers.integers[i];
    return true;
  }
  const double value = numbers.reals[i];
  whole = std::abs(value) < 9e15 ? static_cast<int64_t>(value) : 0;
  return static_cast<double>(whole) == value;
}

double number_at(const FoundTarget& numbers, size_t i) {
  return numbers.reals.empty() ? static_cast<double>(numbers.integers[i]) : numbers.reals[i];
}

// "3 labels"
std::string counted(size_t count, ObjectEntry entry) {
  return std::to_string(count) + " " + word_of(entry);
}

}  // namespace

// The objects of one record.
class RecordEncoder::Picture {
 public:
  explicit Picture(BoxFormat boxes) : usual_boxes_(boxes) {}

  void read(const FoundObjects& found) {
    boxes_ = found.box_format.value_or(usual_boxes_);
    picture_.clear();
    objects_.clear();
    problem_ = found.problem;
    lengths_.clear();
    texts_.clear();
    points_ = 0;
    has_objects_ = false;
    picture_.picture_id = found.picture_id;
    picture_.size = found.size;
    if (!problem_.empty()) return;
    if (found.json.empty()) {
      for (const FoundObjects::Column& column : found.columns) take_column(column);
    } else {
      read_json(found);
    }
    check_lengths();
    finish();
  }

  // A picture with a problem has nothing else.
  void append(RecordKinds& kinds, std::string& out) const {
    const Annotations nothing;
    CodeWriter writer(out);
    writer.put_count(static_cast<uint64_t>(points_));
    writer.put_count(texts_.size());
    for (const std::string& text : texts_) writer.put_text(text);
    const bool is_fine = problem_.empty();
    const PictureAnnotations picture{
        .name = {}, .annotations = is_fine ? &picture_ : &nothing, .problem = problem_};
    append_picture({.keypoints = points_}, picture, out);
    if (!is_fine) return;
    kinds.keypoints = std::max(kinds.keypoints, points_);
    kinds.class_texts.insert(texts_.begin(), texts_.end());
    kinds.class_numbers |= texts_.empty() && !picture_.objects.empty();
    for (const AnnotatedObject& object : picture_.objects) {
      kinds.masks |= object.mask.kind != MaskKind::none;
    }
  }

 private:
  // JSON -------------------------------------------------------------------------------------

  void read_json(const FoundObjects& found) {
    current_ = -1;
    JsonScanner json(supply_of(found.json), found.json.size());
    ObjectScanner object(json, picture_);
    json_ = &json;
    object_ = &object;
    try {
      read_at(found.json_path);
      json.expect_end();
    } catch (const JsonError& error) {
      const std::string where = current_ < 0 ? "" : "object " + std::to_string(current_) + ": ";
      set_problem("the JSON of its objects: " + where + error.what());
    }
  }

  // The value at a path of fields.
  void read_at(std::span<const std::string> path) {
    if (path.empty()) return read_objects(true);
    bool is_there = false;
    json_->read_object([&](std::string_view key) {
      if (key != path.front()) return json_->skip();
      is_there = true;
      read_at(path.subspan(1));
    });
    if (!is_there) set_problem("its JSON has no field " + quoted_name(path.front()));
  }

  // A list of objects, or an object with lists; `is_outer`: or one that has such a value.
  void read_objects(bool is_outer) {
    const char kind = json_->next_kind();
    if (kind == '[') {
      has_objects_ = true;
      json_->read_array([&] { read_object(); });
    } else if (kind == '{') {
      json_->read_object([&](std::string_view key) { read_field(key, is_outer); });
      if (is_outer && !has_objects_) {
        set_problem("its JSON has no objects: no list, and none in annotations, objects or " +
                    fields_of(ObjectEntry::boxes));
      }
    } else {
      json_->fail("a list of objects or an object with lists is expected");
    }
  }

  void read_object() {
    current_ = std::ssize(objects_);
    RecordObject& object = next_object(objects_.size());
    json_->read_object([&](std::string_view key) {
      const ObjectName* const name = object_name(key);
      if (name == nullptr) return json_->skip();
      read_entry(*name, object);
    });
    current_ = -1;
  }

  // A field beside lists, or a list of what one entry is for each object.
  void read_field(std::string_view key, bool is_outer) {
    const char kind = json_->next_kind();
    const ObjectName* const name = object_name(key);
    if (is_outer && (key == "annotations" || key == "objects")) {
      has_objects_ = true;
      read_objects(false);
    } else if (is_outer && key == "image" && kind == '{') {
      json_->read_object([&](std::string_view inner) { read_picture_field(inner); });
    } else if (name != nullptr && kind == '[') {
      has_objects_ = true;
      read_list(*name);
    } else {
      read_picture_field(key);
    }
  }

  void read_picture_field(std::string_view key) {
    if (key == "width") {
      picture_.size.width = side_of(json_->read_number());
    } else if (key == "height") {
      picture_.size.height = side_of(json_->read_number());
    } else if (key == "image_id" && json_->next_kind() != '"') {
      picture_.picture_id = json_->read_whole();
    } else {
      json_->skip();
    }
  }

  void read_list(const ObjectName& name) {
    size_t count = 0;
    json_->read_array([&] {
      current_ = static_cast<int64_t>(count);
      read_entry(name, next_object(count++));
    });
    current_ = -1;
    lengths_.emplace_back(name.entry, count);
  }

  RecordObject& next_object(size_t place) {
    if (place == kMostObjects) json_->fail("more than " + std::to_string(place) + " objects");
    return object_at(place);
  }

  void read_entry(const ObjectName& name, RecordObject& object) {
    ScannedObject& scanned = object.scanned;
    uint8_t& rank = object.ranks[static_cast<size_t>(name.entry)];
    if (rank < name.rank) return json_->skip();
    rank = name.rank;
    switch (name.entry) {
      case ObjectEntry::boxes:
        return object_->read_box(boxes_, scanned);
      case ObjectEntry::labels:
        scanned.has_label = true;
        object.class_text.clear();
        if (json_->next_kind() == '"') return json_->read_string(object.class_text);
        scanned.object.label = json_->read_whole();
        return;
      case ObjectEntry::ids:
        scanned.has_id = true;
        scanned.object.id = json_->read_whole();
        return;
      case ObjectEntry::area:
        return object_->read_area(scanned);
      case ObjectEntry::iscrowd:
        scanned.object.is_crowd = json_->read_flag();
        return;
      case ObjectEntry::keypoints:
        return object_->read_keypoints(scanned);
      case ObjectEntry::masks:
        return object_->read_mask(scanned);
    }
  }

  // Columns ----------------------------------------------------------------------------------

  void take_column(const FoundObjects::Column& column) {
    const ObjectEntry entry = column.entry;
    const FoundTarget& numbers = column.numbers;
    if (entry == ObjectEntry::boxes) return take_boxes(numbers);
    if (entry == ObjectEntry::masks) return take_masks(column.texts);
    const size_t count = column.texts.empty() ? numbers.size() : column.texts.size();
    if (count > kMostObjects) return refuse_count(count);
    lengths_.emplace_back(entry, count);
    for (size_t i = 0; i < count; ++i) {
      RecordObject& object = object_at(i);
      if (!column.texts.empty()) {
        object.class_text = column.texts[i];
        object.scanned.has_label = true;
      } else if (entry == ObjectEntry::area) {
        object.scanned.object.area = number_at(numbers, i);
        object.scanned.has_area = true;
      } else {
        take_whole(entry, numbers, i, object.scanned);
      }
    }
  }

  // Masks of the picture's size. Their pixels may need much more memory than their files.
  void take_masks(const std::vector<std::string>& files) {
    constexpr int64_t kMostPixels = int64_t{1} << 26;
    if (files.size() > kMostObjects) return refuse_count(files.size());
    lengths_.emplace_back(ObjectEntry::masks, files.size());
    for (size_t i = 0; i < files.size(); ++i) {
      ScannedObject& object = object_at(i).scanned;
      const std::span file(reinterpret_cast<const uint8_t*>(files[i].data()), files[i].size());
      const std::string problem = read_label_image(file, 1, kMostPixels, mask_);
      if (!problem.empty()) {
        object.set_problem("its mask: " + problem);
        continue;
      }
      const auto first = static_cast<uint32_t>(picture_.runs.size());
      append_pixel_runs(mask_.pixels, mask_.size, picture_.runs);
      object.object.mask = {MaskKind::runs, first,
                            static_cast<uint32_t>(picture_.runs.size()) - first};
      object.mask_size = mask_.size;
      if (std::ssize(picture_.runs) > kMostPixels) {
        return set_problem("its masks have more than " + std::to_string(kMostPixels) + " runs");
      }
    }
  }

  void take_boxes(const FoundTarget& numbers) {
    const bool has_fours =
        numbers.size() == 0 || (numbers.shape.size() == 2 && numbers.shape[1] == 4);
    if (!has_fours) {
      return set_problem("its boxes have the shape " + shape_text(numbers.shape) +
                         ", must be 4 numbers for each");
    }
    const size_t count = numbers.size() / 4;
    if (count > kMostObjects) return refuse_count(count);
    lengths_.emplace_back(ObjectEntry::boxes, count);
    for (size_t i = 0; i < count; ++i) {
      std::array<double, 4> box{};
      for (size_t k = 0; k < 4; ++k) box[k] = number_at(numbers, 4 * i + k);
      object_at(i).scanned.object.box = upright_box(boxes_, box);
      object_at(i).scanned.has_box = true;
    }
  }

  void refuse_count(size_t count) {
    set_problem(std::to_string(count) + " objects, at most " + std::to_string(kMostObjects));
  }

  static void take_whole(ObjectEntry entry, const FoundTarget& numbers, size_t i,
                         ScannedObject& object) {
    int64_t value = 0;
    if (!is_whole(numbers, i, value)) {
      return object.set_problem(std::string(word_of(entry)) + " has no whole number");
    }
    if (entry == ObjectEntry::labels) {
      object.object.label = value;
      object.has_label = true;
    } else if (entry == ObjectEntry::ids) {
      object.object.id = value;
      object.has_id = true;
    } else {
      if (value != 0 && value != 1) object.set_problem("iscrowd is neither 0 nor 1");
      object.object.is_crowd = value == 1;
    }
  }

  // When all was read ------------------------------------------------------------------------

  RecordObject& object_at(size_t place) {
    if (place >= objects_.size()) objects_.resize(place + 1);
    return objects_[place];
  }

  void check_lengths() {
    for (size_t i = 1; i < lengths_.size(); ++i) {
      if (lengths_[i].second == lengths_[0].second) continue;
      set_problem("its objects have " + counted(lengths_[0].second, lengths_[0].first) + " and " +
                  counted(lengths_[i].second, lengths_[i].first));
    }
  }

  void finish() {
    std::vector<Keypoint> points;
    std::swap(points, picture_.keypoints);
    for (const RecordObject& object : objects_) {
      points_ = std::max(points_, static_cast<int>(object.scanned.points));
      if (picture_.size == Size{} && object.scanned.object.mask.kind == MaskKind::runs) {
        picture_.size = object.scanned.mask_size;
      }
    }
    number_texts();
    for (RecordObject& object : objects_) add_object(object, points);
    note_double_ids();
  }

  // Classes that are texts get their places among those of this record.
  void number_texts() {
    std::map<std::string, int64_t> places;
    for (RecordObject& object : objects_) {
      if (object.class_text.empty()) continue;
      object.class_text = valid_text(object.class_text);
      const auto [place, is_new] = places.try_emplace(object.class_text, std::ssize(texts_));
      if (is_new) texts_.push_back(object.class_text);
      object.scanned.object.label = place->second;
    }
  }

  void add_object(RecordObject& found, std::span<const Keypoint> points) {
    ScannedObject& scanned = found.scanned;
    scanned.object.index = static_cast<int32_t>(picture_.objects.size());
    if (!scanned.has_id) scanned.object.id = scanned.object.index;
    scanned.set_missing_area();
    if (!scanned.has_box)
      scanned.set_problem("it has no box (" + fields_of(ObjectEntry::boxes) + ")");
    if (!scanned.has_label)
      scanned.set_problem("it has no class (" + fields_of(ObjectEntry::labels) + ")");
    if (scanned.has_label && found.class_text.empty() != texts_.empty()) {
      scanned.set_problem("its class is a number or empty, and that of others is a text");
    }
    if (scanned.points != 0 && static_cast<int>(scanned.points) != points_) {
      scanned.set_problem(std::to_string(scanned.points) + " keypoints, and others have " +
                          std::to_string(points_));
    }
    scanned.set_problem(mask_size_problem(scanned.object.mask, scanned.mask_size, picture_.size));
    if (!scanned.problem.empty()) set_problem(object_words(scanned.object) + scanned.problem);
    picture_.objects.push_back(scanned.object);
    const auto own = points.subspan(scanned.first_point, scanned.points);
    picture_.keypoints.insert(picture_.keypoints.end(), own.begin(), own.end());
    // Objects without keypoints have none that is labelled.
    picture_.keypoints.resize(picture_.objects.size() * static_cast<size_t>(points_));
  }

  void note_double_ids() {
    std::set<int64_t> ids;
    for (const AnnotatedObject& object : picture_.objects) {
      if (ids.insert(object.id).second) continue;
      set_problem(object_words(object) + "an object before it has this id, too");
    }
  }

  // Keeps the first one.
  void set_problem(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }

  const BoxFormat usual_boxes_;
  BoxFormat boxes_ = BoxFormat::xywh;  // of this record
  JsonScanner* json_ = nullptr;
  ObjectScanner* object_ = nullptr;
  Annotations picture_;
  std::vector<RecordObject> objects_;
  std::vector<std::pair<ObjectEntry, size_t>> lengths_;  // of lists and columns
  std::vector<std::string> texts_;                       // of classes, by their numbers here
  std::string problem_;
  LabelImage mask_;
  int points_ = 0;        // keypoints of each object
  int64_t current_ = -1;  // the object that is read; -1: none
  bool has_objects_ = false;
};

RecordEncoder::RecordEncoder(BoxFormat boxes) : picture_(std::make_unique<Picture>(boxes)) {}
RecordEncoder::~RecordEncoder() = default;

void RecordEncoder::append(const FoundObjects& found, std::string& out) {
  picture_->read(found);
  picture_->append(kinds_, out);
}

void RecordKinds::add(const RecordKinds& others) {
  masks |= others.masks;
  keypoints = std::max(keypoints, others.keypoints);
  class_numbers |= others.class_numbers;
  class_texts.insert(others.class_texts.begin(), others.class_texts.end());
}

AnnotationInfo RecordKinds::info(std::vector<std::string> names) const {
  if (class_numbers && !class_texts.empty()) {
    throw std::runtime_error(
        "the classes of some objects are numbers, and those of others are texts, as " +
        quoted_name(*class_texts.begin()));
  }
  AnnotationInfo info{.objects = true, .masks = masks, .keypoints = keypoints};
  info.class_names = std::move(names);
  if (!class_texts.empty()) info.class_names.assign(class_texts.begin(), class_texts.end());
  return info;
}

std::string read_record(const AnnotationInfo& info, std::string_view piece, Annotations& out) {
  out.clear();
  const std::string damaged = "the bytes of its objects are damaged";
  CodeReader in(piece);
  const auto points = static_cast<int>(in.get_count() & INT32_MAX);
  std::vector<int64_t> classes;
  for (uint64_t left = in.get_length(); left > 0 && in.ok(); --left) {
    const auto& names = info.class_names;
    const auto name = std::ranges::lower_bound(names, in.get_text());
    classes.push_back(name - names.begin());
  }
  if (!in.ok()) return damaged;
  const auto problem =
      read_picture({.keypoints = points}, piece.substr(piece.size() - in.left()), "", out);
  if (!problem) return damaged;
  if (!problem->empty()) return *problem;
  if (points != 0 && points != info.keypoints) {
    return std::to_string(points) + " keypoints of each object, others have " +
           std::to_string(info.keypoints);
  }
  out.keypoints.resize(out.objects.size() * static_cast<size_t>(info.keypoints));
  for (AnnotatedObject& object : out.objects) {
    if (classes.empty()) continue;
    if (object.label < 0 || object.label >= std::ssize(classes)) return damaged;
    object.label = classes[static_cast<size_t>(object.label)];
  }
  return annotation_problem(info, out);
}

}  // namespace stoker
