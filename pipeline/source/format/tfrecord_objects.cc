#include "pipeline/source/format/tfrecord_objects.h"

#include <array>
#include <limits>

#include "pipeline/source/format/text_value.h"

namespace stoker {
namespace {

constexpr std::array kSides = {"/bbox/xmin", "/bbox/ymin", "/bbox/xmax", "/bbox/ymax"};
constexpr const char* kWidthKey = "image/width";
constexpr const char* kHeightKey = "image/height";

}  // namespace

ExampleObjects::ExampleObjects(const BlobReader& blob, const ObjectField& wanted)
    : prefix_(wanted.field) {
  if (wanted.boxes == BoxFormat::xywh) return;
  blob.fail(0,
            "`objects_from` says a format of boxes, and those of TFRecord files are "
            "xmin, ymin, xmax and ymax");
}

const FoundObjects* ExampleObjects::read(const ExampleRecord& record,
                                         const std::vector<ExampleEntry>& entries) {
  if (prefix_.empty()) return nullptr;
  record_ = &record;
  entries_ = &entries;
  found_ = {};
  found_.box_format = BoxFormat::xyxy;
  if (keys_of_first_.empty()) keys_of_first_ = list_keys(entries);
  read_picture();
  read_boxes();
  if (!found_.problem.empty() || found_.columns.empty()) return &found_;
  read_classes();
  read_column("/area", ObjectEntry::area);
  read_column("/is_crowd", ObjectEntry::iscrowd);
  read_masks();
  return &found_;
}

void ExampleObjects::finish(const BlobReader& blob) const {
  if (prefix_.empty() || any_) return;
  blob.fail(0, "no record has a key " + quoted_name(prefix_ + kSides[0]) +
                   " for objects; of the first, " + keys_of_first_);
}

bool ExampleObjects::numbers_of(const char* key, FoundTarget& out) const {
  const ExampleEntry* const entry = find_entry(*entries_, prefix_ + key);
  if (entry == nullptr) return false;
  read_numbers(*record_, *entry, out);
  return true;
}

// Returns the one integer at a key of the whole picture; -1: there is none.
int64_t ExampleObjects::number_of(const char* key) const {
  const ExampleEntry* const entry = find_entry(*entries_, key);
  if (entry == nullptr) return -1;
  const ExampleFeature feature = read_feature(*record_, *entry);
  return feature.kind == FeatureKind::int64 && feature.values == 1 ? feature.number : -1;
}

void ExampleObjects::read_picture() {
  const auto side = [this](const char* key) {
    const int64_t number = number_of(key);
    return number > std::numeric_limits<int>::max() ? -1 : static_cast<int>(number);
  };
  found_.size = {side(kWidthKey), side(kHeightKey)};
  if (found_.size.height <= 0 || found_.size.width <= 0) found_.size = {};
  const ExampleEntry* const source = find_entry(*entries_, "image/source_id");
  if (source == nullptr) return;
  read_texts(*record_, *source, texts_);
  if (texts_.size() == 1) found_.picture_id = parse_integer(texts_[0]).value_or(-1);
}

void ExampleObjects::read_boxes() {
  std::array<FoundTarget, 4> sides;
  size_t there = 0;
  for (size_t i = 0; i < sides.size(); ++i) there += numbers_of(kSides[i], sides[i]) ? 1 : 0;
  if (there == 0) return;
  any_ = true;
  const size_t count = sides[0].size();
  for (size_t i = 0; i < sides.size(); ++i) {
    if (sides[i].size() == count) continue;
    return set_problem("its boxes have " + std::to_string(count) + " numbers at " +
                       quoted_name(prefix_ + kSides[0]) + " and " +
                       std::to_string(sides[i].size()) + " at " + quoted_name(prefix_ + kSides[i]));
  }
  if (count > 0 && found_.size == Size{}) {
    return set_problem("its boxes are shares of a size that is not there: no " +
                       quoted_name(kWidthKey) + " or " + quoted_name(kHeightKey));
  }
  FoundObjects::Column& boxes = found_.columns.emplace_back();
  boxes.numbers.shape = {static_cast<int64_t>(count), 4};
  for (size_t k = 0; k < count; ++k) {
    for (size_t i = 0; i < sides.size(); ++i) {
      const auto& numbers = sides[i].reals;
      const double share = numbers.empty() ? static_cast<double>(sides[i].integers[k]) : numbers[k];
      boxes.numbers.add(share * (i % 2 == 0 ? found_.size.width : found_.size.height));
    }
  }
}

void ExampleObjects::read_classes() {
  FoundObjects::Column labels{.entry = ObjectEntry::labels};
  const bool is_there = numbers_of("/class/label", labels.numbers);
  const ExampleEntry* const text = find_entry(*entries_, prefix_ + "/class/text");
  if (text != nullptr && (!is_there || labels.numbers.size() == 0)) {
    read_texts(*record_, *text, texts_);
    labels.texts.assign(texts_.begin(), texts_.end());
  }
  found_.columns.push_back(std::move(labels));
}

void ExampleObjects::read_column(const char* key, ObjectEntry entry) {
  FoundObjects::Column column{.entry = entry};
  if (numbers_of(key, column.numbers) && column.numbers.size() > 0) {
    found_.columns.push_back(std::move(column));
  }
}

void ExampleObjects::read_masks() {
  const ExampleEntry* const masks = find_entry(*entries_, prefix_ + "/mask");
  if (masks == nullptr) return;
  read_texts(*record_, *masks, texts_);
  if (texts_.empty()) return;
  FoundObjects::Column& column = found_.columns.emplace_back();
  column.entry = ObjectEntry::masks;
  column.texts.assign(texts_.begin(), texts_.end());
}

void ExampleObjects::set_problem(std::string problem) {
  if (found_.problem.empty()) found_.problem = std::move(problem);
}

}  // namespace stoker
