#include "pipeline/source/format/list.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/source/format/line_reader.h"
#include "pipeline/source/format/text_value.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 7> kPathNames = {
    "path", "file", "file_name", "filename", "filepath", "image", "image_path"};
constexpr std::array<std::string_view, 7> kListLabelNames = {
    "label", "labels", "class", "class_name", "category", "target", "y"};
constexpr size_t kLongestPath = 4095;  // bytes; what Linux takes, without the NUL

enum class ListForm : uint8_t { csv, tsv, jsonl };

ListForm list_form(const BlobReader& blob) {
  const std::string path = lower_case(blob.path());
  if (path.ends_with(".csv")) return ListForm::csv;
  if (path.ends_with(".tsv")) return ListForm::tsv;
  if (path.ends_with(".jsonl") || path.ends_with(".ndjson")) return ListForm::jsonl;
  blob.fail(0, "the name of a list ends in .csv, .tsv, .jsonl or .ndjson");
}

// The columns of CSV and TSV, or the keys of an object.
using ListNames = std::vector<std::string>;

std::string listed(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

std::string listed(const ListNames& names) {
  constexpr size_t kEnough = 1000;
  std::string text;
  for (const std::string& name : names) {
    if (text.size() > kEnough) return text + ", ...";
    text += (text.empty() ? "" : ", ") + quoted_name(name);
  }
  return text.empty() ? "nothing" : text;
}

// Returns the place of the first of `wanted` that is among the names, in any case of letters.
std::optional<size_t> find_usual_name(const ListNames& names,
                                      std::span<const std::string_view> wanted) {
  for (const std::string_view usual : wanted) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (lower_case(names[i]) == usual) return i;
    }
  }
  return {};
}

std::optional<size_t> find_name(const ListNames& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return {};
  return static_cast<size_t>(found - names.begin());
}

// Where the path, the label and the targets are.
struct ListPlaces {
  size_t path = 0;
  std::optional<size_t> label;
  std::vector<size_t> targets;
};

// Takes the fields that the user named, or the usual ones.
ListPlaces choose_places(const LineReader& lines, const ListNames& names,
                         const FieldChoice& fields) {
  const auto place = [&](const std::string& name, std::span<const std::string_view> usual,
                         const std::string& what) {
    const auto found = name.empty() ? find_usual_name(names, usual) : find_name(names, name);
    if (found) return *found;
    lines.fail((name.empty() ? "none of " + listed(usual) : "no " + quoted_name(name)) +
               " is here; there is " + listed(names) + ": " + what);
  };
  ListPlaces places;
  places.path = place(fields.image, kPathNames, "say where the path is with `image_from`");
  if (!fields.no_labels()) {
    places.label =
        place(fields.label, kListLabelNames, "say where the label is with `label_from`, or none");
  }
  for (const TargetField& target : fields.targets) {
    places.targets.push_back(place(target.field, {}, "it is named as a target"));
  }
  return places;
}

// Gives the samples to the sink and watches over what all lines must have in common.
class ListSamples {
 public:
  ListSamples(const LineReader& lines, const FieldChoice& fields, SampleSink& out)
      : lines_(lines), fields_(fields), out_(out), targets_(fields.targets.size()) {}
  // The label may be of another kind than the first one's.
  void add(std::string_view path, const BlobLabel& label);
  // A label of CSV or TSV: the first one says whether they are numbers.
  BlobLabel read_label(std::string_view text) const;
  const TargetField& field(size_t target) const { return fields_.targets[target]; }
  // The values of a target of the next sample.
  FoundTarget& target(size_t target) { return targets_[target]; }
  // Notes a problem with them. Throws if the target does not vary.
  void check_target(size_t target, const std::string& problem) {
    targets_[target].problem = problem;
    if (problem.empty() || field(target).varies) return;
    lines_.fail("target " + quoted_name(field(target).name) + " " + problem);
  }

 private:
  const LineReader& lines_;
  const FieldChoice& fields_;
  SampleSink& out_;
  std::vector<FoundTarget> targets_;
  std::optional<size_t> kind_;  // of the first label, as its place in BlobLabel
};

void ListSamples::add(std::string_view path, const BlobLabel& label) {
  if (path.empty()) lines_.fail("an empty path");
  if (path.find('\0') != std::string_view::npos) {
    lines_.fail("a path with a NUL byte: " + quoted_name(path));
  }
  if (path.size() > kLongestPath) {
    lines_.fail("a path of " + std::to_string(path.size()) + " bytes; at most " +
                std::to_string(kLongestPath));
  }
  if (!kind_) kind_ = label.index();
  if (label.index() != *kind_) {
    const auto* text = std::get_if<std::string_view>(&label);
    lines_.fail(text ? "the label " + quoted_name(*text) +
                           ": text where the first lines have numbers"
                     : "the label " + std::to_string(std::get<int64_t>(label)) +
                           ": a number where the first lines have text");
  }
  FoundSample sample;
  sample.storage = BlobStorage::file;
  sample.name = path;
  sample.label = label;
  for (FoundTarget& target : targets_) target.offset = lines_.offset();
  sample.targets = targets_;
  sample.line = lines_.number();
  out_.add(sample);
}

// Whether the text is written as a number, also one that is too large or no whole one.
bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return false;
  double value = 0;
  return std::from_chars(text.data(), text.data() + text.size(), value).ptr ==
         text.data() + text.size();
}

BlobLabel ListSamples::read_label(std::string_view text) const {
  BlobLabel label;
  text = trimmed(text);
  const bool may_be_number = !kind_ || *kind_ == BlobLabel(int64_t{0}).index();
  const auto number = may_be_number ? parse_integer(text) : std::nullopt;
  if (number) return *number;
  const std::string problem = set_text_label(text, label);
  if (!problem.empty()) lines_.fail("the label " + problem);
  // As text it would silently become a class of its own.
  if (may_be_number && is_number(text)) {
    lines_.fail("the label " + quoted_name(text) +
                " is a number, but none that a class may have: classes are whole numbers from 0 "
                "on, or text; other numbers are read as a target");
  }
  return label;
}

void split_tabs(std::string_view line, std::vector<std::string>& fields) {
  size_t count = 0;
  for (size_t at = 0; at <= line.size(); ++count) {
    const size_t end = std::min(line.find('\t', at), line.size());
    if (count == fields.size()) fields.emplace_back();
    fields[count] = line.substr(at, end - at);
    at = end + 1;
  }
  fields.resize(count);
}

// Sets `field` to the field at `at`, and returns where it ends: at a comma or with the line.
size_t read_quoted(const LineReader& lines, std::string_view line, size_t at, std::string& field) {
  field.clear();
  for (++at;;) {
    // LineReader gives no line with an open quote, so that there is one more.
    const size_t quote = line.find('"', at);
    field += line.substr(at, quote - at);
    at = quote + 1;
    if (at == line.size() || line[at] == ',') return at;
    if (line[at] != '"') lines.fail("text after the quote that closes a field");
    field += '"';
    ++at;
  }
}

void split_commas(const LineReader& lines, std::string_view line,
                  std::vector<std::string>& fields) {
  size_t count = 0;
  for (size_t at = 0; at <= line.size(); ++count, ++at) {
    if (count == fields.size()) fields.emplace_back();
    if (line.substr(at).starts_with('"')) {
      at = read_quoted(lines, line, at, fields[count]);
      continue;
    }
    const size_t end = std::min(line.find(',', at), line.size());
    fields[count] = line.substr(at, end - at);
    if (fields[count].find('"') != std::string::npos) {
      lines.fail("a quote inside the field " + quoted_name(fields[count]) +
                 ": such a field is written in quotes, and its quotes twice");
    }
    at = end;
  }
  fields.resize(count);
}

// Decides from the first line where the fields are; returns whether that line is a header.
bool find_columns(const LineReader& lines, const ListNames& first, const FieldChoice& fields,
                  ListPlaces& places) {
  ListNames names;
  for (const std::string& field : first) names.emplace_back(trimmed(field));
  const bool names_label = !fields.label.empty() && !fields.no_labels();
  const bool names_others = !fields.image.empty() || !fields.targets.empty();
  const bool is_header = find_usual_name(names, kPathNames) ||
                         (!fields.image.empty() && find_name(names, fields.image)) ||
                         (names_label && find_name(names, fields.label));
  if (is_header || names_label || names_others) {
    places = choose_places(lines, names, fields);
    return true;
  }
  if (fields.no_labels()) return false;
  if (first.size() < 2) {
    lines.fail("one column, " + quoted_name(first[0]) +
               ": the label is missing; `label_from` none takes a list without labels");
  }
  places.label = 1;
  return false;
}

void scan_columns(LineReader& lines, ListForm form, const FieldChoice& fields, SampleSink& out) {
  ListSamples samples(lines, fields, out);
  std::vector<std::string> row;
  ListPlaces places;
  size_t columns = 0;
  for (std::string_view line; lines.next(line);) {
    form == ListForm::csv ? split_commas(lines, line, row) : split_tabs(line, row);
    if (columns == 0) {
      columns = row.size();
      if (find_columns(lines, row, fields, places)) continue;
    }
    if (row.size() != columns) {
      lines.fail(std::to_string(row.size()) + " fields, and the first line has " +
                 std::to_string(columns));
    }
    for (size_t i = 0; i < places.targets.size(); ++i) {
      samples.check_target(
          i, read_field_text(samples.field(i), row[places.targets[i]], samples.target(i)));
    }
    samples.add(row[places.path],
                places.label ? samples.read_label(row[*places.label]) : BlobLabel());
  }
}

// Returns how many keys the object has that this line is, those twice that are there twice.
size_t count_keys(std::string_view line) {
  size_t count = 0;
  int depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (in_text) {
      if (c == '\\') ++i;
      in_text = c != '"';
    } else if (c == '"') {
      in_text = true;
    } else {
      depth += (c == '{' || c == '[') - (c == '}' || c == ']');
      count += c == ':' && depth == 1;
    }
  }
  return count;
}

// Throws with the key that is there twice: the parser would take the last one.
void refuse_doubled_key(const LineReader& lines, std::string_view line) {
  std::set<std::string> keys;
  const auto look = [&](int depth, nlohmann::json::parse_event_t event, const nlohmann::json& key) {
    if (event != nlohmann::json::parse_event_t::key || depth != 1) return true;
    if (!keys.insert(key.get<std::string>()).second) {
      lines.fail("the key " + quoted_name(key.get_ref<const std::string&>()) + " is there twice");
    }
    return true;
  };
  [[maybe_unused]] const auto json = nlohmann::json::parse(line, look, false);
}

// The names of the path, the label and the targets in each object; the first object decides.
struct ListKeys {
  std::string path;
  std::optional<std::string> label;
  std::vector<std::string> targets;
};

ListNames keys_of(const nlohmann::json& object) {
  ListNames names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return names;
}

const nlohmann::json& value_of(const LineReader& lines, const nlohmann::json& object,
                               const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end()) {
    lines.fail("no " + quoted_name(key) + " is here, as on the first line; there is " +
               listed(keys_of(object)));
  }
  return *found;
}

void add_object(const LineReader& lines, const nlohmann::json& object, const ListKeys& keys,
                ListSamples& samples) {
  const nlohmann::json& path = value_of(lines, object, keys.path);
  if (!path.is_string()) {
    lines.fail("the path " + quoted_name(keys.path) + " is " + path.type_name() + ", and no text");
  }
  BlobLabel label;
  if (keys.label) {
    const std::string problem = set_json_label(value_of(lines, object, *keys.label), label);
    if (!problem.empty()) lines.fail("the label " + quoted_name(*keys.label) + " " + problem);
  }
  for (size_t i = 0; i < keys.targets.size(); ++i) {
    if (samples.field(i).varies && !object.contains(keys.targets[i])) {
      samples.check_target(i, "is not there");
      continue;
    }
    const nlohmann::json& values = value_of(lines, object, keys.targets[i]);
    samples.check_target(i, read_field_json(samples.field(i), values, samples.target(i)));
  }
  samples.add(path.get_ref<const std::string&>(), label);
}

void scan_objects(LineReader& lines, const FieldChoice& fields, SampleSink& out) {
  ListSamples samples(lines, fields, out);
  std::optional<ListKeys> keys;
  for (std::string_view line; lines.next(line);) {
    if (trimmed(line).empty()) continue;
    const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object()) lines.fail("no JSON object");
    if (count_keys(line) != object.size()) refuse_doubled_key(lines, line);
    if (!keys) {
      const ListNames names = keys_of(object);
      const ListPlaces places = choose_places(lines, names, fields);
      keys.emplace();
      keys->path = names[places.path];
      if (places.label) keys->label = names[*places.label];
      for (const size_t place : places.targets) keys->targets.push_back(names[place]);
    }
    add_object(lines, object, *keys, samples);
  }
}

}  // namespace

void scan_list(BlobReader& blob, const FieldChoice& fields, SampleSink& out) {
  const ListForm form = list_form(blob);
  if (fields.objects.is_wanted()) {
    blob.fail(0,
              "a list of files has no objects for `objects_from`; `objects` names a file of them");
  }
  LineReader lines(blob, form == ListForm::csv ? LineQuotes::csv : LineQuotes::none);
  if (form == ListForm::jsonl) return scan_objects(lines, fields, out);
  scan_columns(lines, form, fields, out);
}

}  // namespace stoker
