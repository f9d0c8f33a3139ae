#include "pipeline/augment/unmoved_targets.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include "pipeline/augment/pixel_steps.h"

namespace stoker {
namespace {

using Words = std::set<std::string, std::less<>>;

// "annotations.faceBox_2" has the words annotations, face and box.
Words words_in(const std::string& name) {
  Words words;
  std::string word;
  const auto end = [&] {
    if (!word.empty()) words.insert(word);
    word.clear();
  };
  for (size_t i = 0; i < name.size(); ++i) {
    const auto letter = static_cast<unsigned char>(name[i]);
    if (!std::isalpha(letter)) {
      end();
      continue;
    }
    if (i > 0 && std::isupper(letter) && std::islower(static_cast<unsigned char>(name[i - 1]))) {
      end();
    }
    word += static_cast<char>(std::tolower(letter));
  }
  end();
  return words;
}

bool is_place(const TargetColumn& column) {
  if (column.varies) return false;
  const Words words = words_in(column.name);
  const auto has = [&](std::initializer_list<std::string_view> wanted) {
    return std::ranges::any_of(wanted, [&](auto word) { return words.contains(word); });
  };
  const bool is_point =
      !column.shape.empty() && (column.shape.back() == 2 || column.shape.back() == 3);
  return (column.numbers() > 1 && has({"box", "boxes", "bbox", "bboxes", "bndbox", "keypoint",
                                       "keypoints", "kpt", "kpts", "landmark", "landmarks",
                                       "polygon", "polygons", "xyxy", "xywh", "cxcywh", "ltrb"})) ||
         (is_point && has({"point", "points"})) ||
         (column.shape.size() > 1 &&
          has({"mask", "masks", "segmentation", "heatmap", "heatmaps"})) ||
         has({"xmin", "ymin", "xmax", "ymax"});
}

struct Moving {
  std::vector<std::string> stages{};  // their names, each once
  bool only_resizes = true;
};

// Names the stages that move the pixels of example images of this size.
void watch_moves(const AugmentView& view, Size size, Moving& moving) {
  constexpr int64_t kSamples = 64;
  Draws draws;
  for (int64_t sample = 0; sample < kSamples; ++sample) {
    draws.begin(size, view.output, 0, 0, sample);
    for (const Stage& stage : view.stages.stages()) {
      const size_t begin = draws.steps().size();
      stage.draw(draws);
      if (!draws.failure().empty()) break;
      for (const PixelStep& step : draws.steps().subspan(begin)) {
        const Motion motion = step.kind->motion;
        if (motion == Motion::none || motion == Motion::unknown || !stage.type()) continue;
        if (is_of_objects(motion)) continue;
        if (step.kind != &kResizeStep) moving.only_resizes = false;
        if (std::ranges::find(moving.stages, stage.type()->name) == moving.stages.end()) {
          moving.stages.emplace_back(stage.type()->name);
        }
      }
    }
  }
}

Moving moving_stages(const AugmentSpec& augment, const Source& source) {
  Moving moving;
  const bool is_raw = source.encoding() != SampleEncoding::image_file;
  for (int number = 0; number < augment.views(); ++number) {
    const AugmentView view = augment.view(number);
    for (const Size size : {Size{500, 375}, Size{375, 500}}) {
      watch_moves(view, is_raw ? source.raw_size() : size, moving);
    }
  }
  return moving;
}

template <class T>
bool within_one(const std::vector<std::byte>& bytes) {
  for (size_t i = 0; i < bytes.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, &bytes[i], sizeof(T));
    if (!(value >= 0 && value <= 1)) return false;
  }
  return true;
}

bool within_one(TargetType type, const std::vector<std::byte>& bytes) {
  switch (type) {
    case TargetType::uint8:
      return within_one<uint8_t>(bytes);
    case TargetType::int32:
      return within_one<int32_t>(bytes);
    case TargetType::int64:
      return within_one<int64_t>(bytes);
    case TargetType::float32:
      return within_one<float>(bytes);
    case TargetType::float16:
    case TargetType::bfloat16:
    case TargetType::text:
      break;
  }
  return false;
}

// Whether some samples' numbers of a target are from 0 to 1.
bool is_relative(const Source& source, size_t place) {
  constexpr int64_t kLooked = 16;
  std::vector<std::vector<std::byte>> values;
  SampleTargets targets;
  for (const TargetColumn& column : source.targets()) {
    values.emplace_back(static_cast<size_t>(column.bytes()));
    targets.columns.push_back(values.back().data());
  }
  targets.varying.resize(targets.columns.size());
  const int64_t looked = std::min(kLooked, source.size());
  for (int64_t i = 0; i < looked; ++i) {
    source.read_targets(i * source.size() / looked, {}, targets);
    if (!within_one(source.targets()[place].type, values[place])) return false;
  }
  return true;
}

std::string list_joined(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  return text;
}

}  // namespace

std::string unmoved_targets(const Source& source, const AugmentSpec& augment) {
  const auto columns = source.targets();
  if (std::ranges::none_of(columns, is_place)) return "";
  const Moving moving = moving_stages(augment, source);
  if (moving.stages.empty()) return "";
  std::vector<std::string> unmoved;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!is_place(columns[i]) || (moving.only_resizes && is_relative(source, i))) continue;
    unmoved.push_back(columns[i].describe());
  }
  if (unmoved.empty()) return "";
  const bool one = unmoved.size() == 1;
  return "the " + std::string(one ? "target " : "targets ") + list_joined(unmoved) +
         (one ? " seems" : " seem") + " to say where something is in the picture, and " +
         list_joined(moving.stages) + (moving.stages.size() == 1 ? " moves" : " move") +
         " the pixels: targets stay as they are in the data, and are wrong for such rows";
}

}  // namespace stoker
