#include "pipeline/source/annotated/voc.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <stdexcept>
#include <utility>

#include "pipeline/files/durable_file.h"
#include "pipeline/files/printable_name.h"
#include "pipeline/files/xml.h"
#include "pipeline/source/annotated/check_annotations.h"
#include "pipeline/source/annotated/files_below.h"
#include "pipeline/source/format/text_value.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 20> kVocClasses = {
    "aeroplane", "bicycle",     "bird",  "boat",        "bottle", "bus",      "car",
    "cat",       "chair",       "cow",   "diningtable", "dog",    "horse",    "motorbike",
    "person",    "pottedplant", "sheep", "sofa",        "train",  "tvmonitor"};

const XmlElement* child_of(const XmlElement& element, std::string_view name) {
  const auto child = std::ranges::find(element.children, name, &XmlElement::name);
  return child == element.children.end() ? nullptr : &*child;
}

double voc_number(const XmlElement& element, std::string_view field) {
  const std::string_view text = trimmed(element.child_text(field));
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  throw std::runtime_error(std::string(field) + " is " + quoted_name(text) + ", and no number");
}

int voc_side(const XmlElement& element, std::string_view field) {
  const double side = voc_number(element, field);
  if (side >= 0 && side <= 1e9) return static_cast<int>(side);
  throw std::runtime_error(std::string(field) + " is " +
                           quoted_name(trimmed(element.child_text(field))));
}

void read_voc_object(const XmlElement& element, AnnotatedObject& object) {
  const XmlElement* const box = child_of(element, "bndbox");
  if (box == nullptr) throw std::runtime_error("no bndbox");
  object.box = {voc_number(*box, "xmin"), voc_number(*box, "ymin"), voc_number(*box, "xmax"),
                voc_number(*box, "ymax")};
  object.area = (object.box[2] - object.box[0]) * (object.box[3] - object.box[1]);
  object.is_crowd = trimmed(element.child_text("difficult")) == "1";
}

// Class names by number.
std::vector<std::string> numbered(std::set<std::string> found) {
  const auto is_known = [](const std::string& name) {
    return std::ranges::find(kVocClasses, name) != kVocClasses.end();
  };
  if (std::ranges::all_of(found, is_known)) found = {kVocClasses.begin(), kVocClasses.end()};
  std::vector<std::string> names = {""};
  names.insert(names.end(), found.begin(), found.end());
  return names;
}

}  // namespace

void VocReader::read(std::string_view xml, Picture& out) {
  const XmlElement root = parse_xml(xml);
  if (root.name != "annotation") throw std::runtime_error("no element <annotation>");
  if (const XmlElement* const size = child_of(root, "size")) {
    out.annotations.size = {voc_side(*size, "width"), voc_side(*size, "height")};
  }
  for (const XmlElement& child : root.children) {
    if (child.name != "object") continue;
    AnnotatedObject& object = out.annotations.objects.emplace_back();
    object.index = static_cast<int32_t>(out.annotations.objects.size()) - 1;
    object.id = object.index;
    const std::string_view name = trimmed(child.child_text("name"));
    try {
      if (name.empty()) throw std::runtime_error("no name");
      read_voc_object(child, object);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(object_words(object) + error.what());
    }
    out.classes.emplace_back(name);
  }
}

void VocReader::add(std::string name, std::string_view xml) {
  Picture& picture = pictures_.emplace_back(Picture{.name = std::move(name)});
  try {
    read(xml, picture);
  } catch (const std::runtime_error& error) {
    picture.problem = error.what();
    picture.annotations.clear();
    picture.classes.clear();
  }
}

AnnotationSetBuilder VocReader::finish() {
  std::set<std::string> found;
  for (const Picture& picture : pictures_) {
    found.insert(picture.classes.begin(), picture.classes.end());
  }
  const std::vector<std::string> names = numbered(std::move(found));
  AnnotationSetBuilder builder({.objects = true, .class_names = names});
  for (Picture& picture : pictures_) {
    for (size_t i = 0; i < picture.classes.size(); ++i) {
      const auto place = std::lower_bound(names.begin() + 1, names.end(), picture.classes[i]);
      picture.annotations.objects[i].label = place - names.begin();
    }
    builder.add(picture.name, picture.annotations, picture.problem);
  }
  pictures_.clear();
  return builder;
}

SharedAnnotations open_voc(const std::string& folder) {
  VocReader reader;
  for (const std::string& file : files_below(folder, ".xml")) {
    reader.add(std::string(stem_of_path(file)), read_whole_file(folder + "/" + file));
  }
  return reader.finish().finish();
}

}  // namespace stoker
