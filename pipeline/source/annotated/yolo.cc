#include "pipeline/source/annotated/yolo.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include "pipeline/files/durable_file.h"
#include "pipeline/source/annotated/files_below.h"
#include "pipeline/source/format/text_value.h"

namespace stoker {
namespace {

constexpr std::string_view kYoloClassFile = "classes";
constexpr size_t kMostYoloClasses = 100'000;
// How far a share may lie outside of the picture, because somebody has rounded it.
constexpr double kYoloSlack = 0.01;

// Cuts the first line, or up to another end, off a text.
std::string_view cut_off(std::string_view& text, char end) {
  const size_t length = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return part;
}

// Sets `numbers` to those of a row. Returns "", or what is wrong.
std::string read_row(std::string_view row, std::vector<double>& numbers) {
  numbers.clear();
  while (!(row = trimmed(row)).empty()) {
    double& number = numbers.emplace_back();
    const auto [end, error] = std::from_chars(row.data(), row.data() + row.size(), number);
    const auto length = static_cast<size_t>(end - row.data());
    const bool ends = length == row.size() || row[length] == ' ' || row[length] == '\t';
    if (error != std::errc() || !ends)
      return quoted_name(row.substr(0, row.find(' '))) + " is no number";
    row.remove_prefix(length);
  }
  return "";
}

std::string check_row(const std::vector<double>& numbers) {
  const bool is_box = numbers.size() == 5;
  const bool is_polygon = numbers.size() >= 7 && numbers.size() % 2 == 1;
  if (!is_box && !is_polygon) {
    return std::to_string(numbers.size()) +
           " numbers; a box has 5, a polygon an odd number of at least 7";
  }
  const double label = numbers[0];
  if (!(label >= 0 && label < static_cast<double>(kMostYoloClasses)) ||
      label != static_cast<double>(static_cast<int64_t>(label))) {
    return "the class is " + std::to_string(label);
  }
  for (size_t i = 1; i < numbers.size(); ++i) {
    if (numbers[i] >= -kYoloSlack && numbers[i] <= 1 + kYoloSlack) continue;
    return std::to_string(numbers[i]) + " is no share of the picture, from 0 to 1";
  }
  return "";
}

void append_object(const std::vector<double>& numbers, Annotations& out) {
  const double width = out.size.width, height = out.size.height;
  AnnotatedObject object;
  object.label = static_cast<int64_t>(numbers[0]);
  object.index = static_cast<int32_t>(out.objects.size());
  object.id = object.index;
  if (numbers.size() == 5) {
    const double x = numbers[1] * width, y = numbers[2] * height;
    const double half_width = numbers[3] * width / 2, half_height = numbers[4] * height / 2;
    object.box = {x - half_width, y - half_height, x + half_width, y + half_height};
  } else {
    object.mask = {MaskKind::polygons, static_cast<uint32_t>(out.polygons.size()), 1};
    const auto first = static_cast<uint32_t>(out.points.size());
    object.box = {width, height, 0, 0};
    for (size_t i = 1; i < numbers.size(); i += 2) {
      const auto& [x, y] =
          out.points.emplace_back(std::array{numbers[i] * width, numbers[i + 1] * height});
      object.box = {std::min(object.box[0], x), std::min(object.box[1], y),
                    std::max(object.box[2], x), std::max(object.box[3], y)};
    }
    out.polygons.push_back({first, static_cast<uint32_t>(out.points.size()) - first});
  }
  object.area = (object.box[2] - object.box[0]) * (object.box[3] - object.box[1]);
  out.objects.push_back(object);
}

std::string_view unquoted(std::string_view text) {
  text = trimmed(text);
  const bool is_quoted =
      text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0];
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

// Sets the name of one class: "0: cat", or "cat" of the next number.
void add_class(std::string_view entry, std::vector<std::string>& names) {
  size_t number = names.size();
  const size_t colon = entry.find(':');
  if (const auto key =
          colon == entry.npos ? std::nullopt : parse_integer(trimmed(entry.substr(0, colon)))) {
    if (*key < 0 || *key >= static_cast<int64_t>(kMostYoloClasses)) return;
    number = static_cast<size_t>(*key);
    entry.remove_prefix(colon + 1);
  }
  if (number >= kMostYoloClasses) return;
  if (number >= names.size()) names.resize(number + 1);
  names[number] = unquoted(entry);
}

std::string_view without_comment(std::string_view line) {
  const size_t comment = line.find(" #");
  return line.starts_with('#') ? "" : line.substr(0, comment);
}

// Adds the entries between brackets, which may be in several lines.
void add_listed(std::string_view text, std::vector<std::string>& names) {
  const char closing = text[0] == '[' ? ']' : '}';
  text.remove_prefix(1);
  text = text.substr(0, text.find(closing));
  while (!text.empty()) {
    const std::string_view entry = trimmed(cut_off(text, ','));
    if (!entry.empty()) add_class(entry, names);
  }
}

// Adds the entries of the lines that follow, up to one that is another key.
void add_lines(std::string_view text, std::vector<std::string>& names) {
  while (!text.empty()) {
    const std::string_view line = without_comment(cut_off(text, '\n'));
    std::string_view entry = trimmed(line);
    if (entry.empty()) continue;
    const bool is_item = entry.starts_with("- ");
    if (!is_item && line[0] != ' ' && line[0] != '\t') return;
    if (is_item) entry.remove_prefix(2);
    add_class(entry, names);
  }
}

std::string text_at(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) ? read_whole_file(path.string()) : "";
}

std::vector<std::string> find_classes(const std::string& folder) {
  std::filesystem::path place = std::filesystem::canonical(folder);
  std::vector<std::string> names;
  for (int level = 0; level < 4; ++level, place = place.parent_path()) {
    for (const char* name : {"data.yaml", "dataset.yaml"}) {
      names = read_yolo_classes(text_at(place / name));
      if (!names.empty()) return names;
    }
  }
  const std::string list = text_at(std::filesystem::path(folder) / "classes.txt");
  for (std::string_view text = list; !text.empty();) {
    if (const auto name = trimmed(cut_off(text, '\n')); !name.empty()) names.emplace_back(name);
  }
  return names;
}

}  // namespace

std::vector<std::string> yolo_names(const std::string& folder) {
  std::vector<std::string> names;
  for (const std::string& file : files_below(folder, ".txt")) {
    names.emplace_back(stem_of_path(file));
    if (names.back() == kYoloClassFile) names.pop_back();
  }
  return names;
}

std::string read_yolo_rows(std::string_view text, Annotations& out) {
  std::vector<double> numbers;
  for (int line = 1; !text.empty(); ++line) {
    const std::string_view row = trimmed(cut_off(text, '\n'));
    if (row.empty()) continue;
    std::string problem = read_row(row, numbers);
    if (problem.empty()) problem = check_row(numbers);
    if (!problem.empty()) return "line " + std::to_string(line) + ": " + problem;
    append_object(numbers, out);
  }
  return "";
}

std::vector<std::string> read_yolo_classes(std::string_view yaml) {
  std::vector<std::string> names;
  while (!yaml.empty()) {
    constexpr std::string_view kKey = "names:";
    if (!yaml.starts_with(kKey)) {
      cut_off(yaml, '\n');
      continue;
    }
    yaml.remove_prefix(kKey.size());
    const std::string_view value = trimmed(yaml);
    if (value.starts_with('[') || value.starts_with('{')) {
      add_listed(value, names);
    } else {
      cut_off(yaml, '\n');
      add_lines(yaml, names);
    }
    break;
  }
  return names;
}

SharedAnnotations open_yolo(const std::string& folder, const std::vector<std::string>& names,
                            const std::function<Size(size_t)>& size_of,
                            const std::vector<std::string>& backgrounds) {
  std::vector<Annotations> pictures(names.size());
  std::vector<std::string> problems(names.size());
  AnnotationInfo info{.objects = true, .class_names = find_classes(folder)};
  for (size_t i = 0; i < names.size(); ++i) {
    pictures[i].size = size_of(i);
    if (pictures[i].size == Size{}) {
      problems[i] = "the size of its picture is not known";
    } else {
      problems[i] = read_yolo_rows(read_whole_file(folder + "/" + names[i] + ".txt"), pictures[i]);
    }
    info.masks |= !pictures[i].polygons.empty();
  }
  AnnotationSetBuilder builder(std::move(info));
  for (size_t i = 0; i < names.size(); ++i) builder.add(names[i], pictures[i], problems[i]);
  for (const std::string& name : backgrounds) builder.add(name, {});
  return builder.finish();
}

}  // namespace stoker
