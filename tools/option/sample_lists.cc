#include "tools/option/sample_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

#include "pipeline/files/printable_name.h"
#include "pipeline/source/subset_source.h"
#include "pipeline/store/object_store.h"

namespace stoker {
namespace {

constexpr std::string_view kPart = "part=", kClasses = "classes=", kDigits = "0123456789";
// Shares are counted in billionths: 1 - 0.9 is then exactly 0.1, as it is written.
constexpr int64_t kWholeShare = 1'000'000'000;
constexpr size_t kDecimals = 9;

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

std::string in_quotes(std::string_view text) {
  return "'" + printable_name(std::string(text)) + "'";
}

struct ListLine {
  int64_t number = 0;  // from 1
  std::string text;    // not empty
};

[[noreturn]] void refuse_line(const std::string& path, const ListLine& line,
                              const std::string& why) {
  refuse(fmt::format("{}:{}: {}", path, line.number, why));
}

// Returns the lines of a file that are not empty.
std::vector<ListLine> read_lines(const std::string& path, const std::string& otherwise) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) refuse(path + ": no such file" + otherwise);
  if (std::filesystem::is_directory(path, none)) refuse(path + ": a folder, not a file");
  std::ifstream file(path);
  if (!file) refuse(path + ": it cannot be read");
  std::vector<ListLine> lines;
  ListLine line;
  while (std::getline(file, line.text)) {
    ++line.number;
    if (line.text.ends_with('\r')) line.text.pop_back();  // of a file from Windows
    if (!line.text.empty()) lines.push_back(line);
  }
  if (file.bad()) refuse(path + ": it cannot be read");
  return lines;
}

bool is_whole_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kDigits) == std::string_view::npos;
}

// Returns nothing for a number that is too large for any sample.
std::optional<int64_t> sample_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

// Reads a share from 0 to 1 in billionths. Returns nothing if it is none.
std::optional<int64_t> share_of(std::string_view text) {
  const size_t dot = text.find('.');
  const std::string_view whole = text.substr(0, dot);
  std::string decimals(dot == std::string_view::npos ? "0" : text.substr(dot + 1));
  if ((whole != "0" && whole != "1") || !is_whole_number(decimals) || decimals.size() > kDecimals) {
    return std::nullopt;
  }
  decimals.resize(kDecimals, '0');
  const int64_t share = (whole == "1" ? kWholeShare : 0) + *sample_number(decimals);
  return share <= kWholeShare ? std::optional(share) : std::nullopt;
}

// Returns the samples before `share`. Both numbers of the split are rounded as they would be if
// somebody wrote them, so that it is the same one.
std::vector<SampleId> ids_before(int64_t samples, int64_t share) {
  const auto number = [](int64_t billionths) {
    return static_cast<double>(billionths) / static_cast<double>(kWholeShare);
  };
  return random_split(samples, {number(share), number(kWholeShare - share)}, 0)[0];
}

std::vector<SampleId> ids_of_part(const Source& source, const std::string& spec) {
  const std::string_view shares = std::string_view(spec).substr(kPart.size());
  const size_t colon = shares.find(':');
  const auto from = share_of(shares.substr(0, colon));
  const auto to =
      colon == std::string_view::npos ? std::nullopt : share_of(shares.substr(colon + 1));
  if (!from || !to || *from >= *to) {
    refuse(in_quotes(spec) +
           ": after part= stand two numbers from 0 to 1, the smaller one first, as in part=0:0.9, "
           "with at most 9 decimals");
  }
  // Each part is what two splits differ in. So parts that share a border fit together, also where
  // the border is inside a sample.
  const std::vector<SampleId> before = ids_before(source.size(), *from);
  const std::vector<SampleId> through = ids_before(source.size(), *to);
  std::vector<SampleId> ids;
  std::set_difference(through.begin(), through.end(), before.begin(), before.end(),
                      std::back_inserter(ids));
  return ids;
}

std::string first_classes(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string text = fmt::format("the {} classes are", names.size());
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i == 0 ? " " : ", ") + in_quotes(names[i]);
  }
  return names.size() > kShown ? text + ", ..." : text;
}

// Returns the numbers of the classes with this name, or the number that the text is. Empty: the
// source has no such class.
std::vector<int> classes_called(const Source& source, std::string_view name) {
  const std::vector<std::string>& names = source.class_names();
  const std::string wanted = valid_text(std::string(name));
  std::vector<int> numbers;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == wanted) numbers.push_back(static_cast<int>(i));
  }
  if (!numbers.empty() || !is_whole_number(name)) return numbers;
  const auto number = sample_number(name);
  if (number && *number < static_cast<int64_t>(names.size())) {
    numbers.push_back(static_cast<int>(*number));
  }
  return numbers;
}

std::string no_class(const Source& source, std::string_view name) {
  return "there is no class " + in_quotes(name) + "; " + first_classes(source.class_names());
}

std::vector<SampleId> ids_of_classes(const Source& source, const std::string& spec) {
  std::set<int> labels;
  for (size_t begin = kClasses.size(); begin <= spec.size();) {
    const size_t end = std::min(spec.find(',', begin), spec.size());
    const std::string name = spec.substr(begin, end - begin);
    const std::vector<int> numbers = classes_called(source, name);
    if (numbers.empty()) refuse(in_quotes(spec) + ": " + no_class(source, name));
    labels.insert(numbers.begin(), numbers.end());
    begin = end + 1;
  }
  return ids_with_labels(source, labels);
}

// Says of every line which sample it names: `id_of` returns the number, or throws.
template <typename IdOf>
std::vector<SampleId> ids_of_lines(const std::string& path, const std::vector<ListLine>& lines,
                                   const IdOf& id_of) {
  std::vector<SampleId> ids;
  std::unordered_map<SampleId, int64_t> line_of;
  for (const ListLine& line : lines) {
    ids.push_back(id_of(line));
    const auto [before, is_new] = line_of.emplace(ids.back(), line.number);
    if (is_new) continue;
    refuse_line(path, line,
                fmt::format("{} is also in line {}", in_quotes(line.text), before->second));
  }
  return ids;
}

// Returns the numbers of the samples that the lines name, as far as there are such samples.
std::unordered_map<std::string, SampleId> numbers_of_names(const Source& source,
                                                           const std::vector<ListLine>& lines) {
  std::unordered_map<std::string, SampleId> numbers;
  for (const ListLine& line : lines) numbers.emplace(line.text, -1);
  for (SampleId id = 0; id < source.size(); ++id) {
    const auto found = numbers.find(source.name(id));
    if (found != numbers.end()) found->second = id;
  }
  return numbers;
}

std::vector<SampleId> ids_of_file(const Source& source, const std::string& path) {
  const std::vector<ListLine> lines =
      read_lines(path, " (a subset is part=A:B, classes=NAME,... or a file)");
  if (lines.empty()) refuse(path + ": it lists no sample");
  const bool numbers = std::all_of(lines.begin(), lines.end(),
                                   [](const ListLine& line) { return is_whole_number(line.text); });
  if (numbers) {
    return ids_of_lines(path, lines, [&](const ListLine& line) {
      const auto id = sample_number(line.text);
      if (id && *id < source.size()) return *id;
      refuse_line(
          path, line,
          fmt::format("there is no sample {}; they are 0 to {}", line.text, source.size() - 1));
    });
  }
  const auto id_of = numbers_of_names(source, lines);
  return ids_of_lines(path, lines, [&](const ListLine& line) {
    const SampleId id = id_of.at(line.text);
    if (id < 0) refuse_line(path, line, "there is no sample " + in_quotes(line.text));
    return id;
  });
}

// Returns nothing for what is no number, and otherwise also what is no weight.
std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
  // A number that no double can hold is too large, or so small that it counts as 0.
  return error == std::errc() ? value : NAN;
}

double weight_in(const std::string& path, const ListLine& line, std::string_view text) {
  const auto weight = number_in(text);
  if (!weight) refuse_line(path, line, in_quotes(text) + " is not a number");
  if (std::isfinite(*weight) && *weight >= 0) return *weight;
  refuse_line(path, line,
              fmt::format("the weight is {}, must be a finite number, 0 or more", text));
}

std::vector<double> weights_of_samples(const Source& source, const std::string& path,
                                       const std::vector<ListLine>& lines) {
  std::vector<double> weights;
  for (const ListLine& line : lines) weights.push_back(weight_in(path, line, line.text));
  if (static_cast<int64_t>(weights.size()) == source.size()) return weights;
  refuse(fmt::format("{}: it has {} weights, and there are {} samples", path, weights.size(),
                     source.size()));
}

std::vector<double> weights_of_classes(const Source& source, const std::string& path,
                                       const std::vector<ListLine>& lines) {
  const std::vector<std::string>& names = source.class_names();
  std::vector<std::optional<double>> of_class(names.size());
  for (const ListLine& line : lines) {
    const size_t space = line.text.find_last_of(" \t");
    if (space == std::string::npos) {
      refuse_line(path, line,
                  in_quotes(line.text) + " is not CLASS WEIGHT, as the lines before are");
    }
    const size_t name_end = line.text.find_last_not_of(" \t", space) + 1;
    const std::string name = line.text.substr(0, name_end);
    const double weight = weight_in(path, line, std::string_view(line.text).substr(space + 1));
    const std::vector<int> numbers = classes_called(source, name);
    if (numbers.empty()) refuse_line(path, line, no_class(source, name));
    for (const int number : numbers) {
      if (of_class[number]) refuse_line(path, line, "class " + in_quotes(name) + " is there twice");
      of_class[number] = weight;
    }
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (!of_class[i]) refuse(path + ": it has no line for class " + in_quotes(names[i]));
  }
  std::vector<double> weights;
  for (SampleId id = 0; id < source.size(); ++id) {
    const int label = source.label(id);
    if (label < 0 || label >= static_cast<int>(names.size())) {
      refuse(fmt::format("{}: sample {} {} has label {}, which is none of the {} classes", path, id,
                         in_quotes(source.name(id)), label, names.size()));
    }
    weights.push_back(*of_class[label]);
  }
  return weights;
}

}  // namespace

std::vector<SampleId> subset_ids(const Source& source, const std::string& spec) {
  std::vector<SampleId> ids = spec.starts_with(kPart)      ? ids_of_part(source, spec)
                              : spec.starts_with(kClasses) ? ids_of_classes(source, spec)
                                                           : ids_of_file(source, spec);
  if (ids.empty()) {
    refuse(fmt::format("{} takes none of the {} samples", in_quotes(spec), source.size()));
  }
  return ids;
}

std::vector<double> weights_from_file(const Source& source, const std::string& path) {
  const std::vector<ListLine> lines = read_lines(path, " (weights are balanced, or a file)");
  if (lines.empty()) refuse(path + ": it has no weight");
  // The first line says which of the two forms the file has.
  const bool classes = lines[0].text.find_first_of(" \t") != std::string::npos;
  std::vector<double> weights =
      classes ? weights_of_classes(source, path, lines) : weights_of_samples(source, path, lines);
  if (std::any_of(weights.begin(), weights.end(), [](double weight) { return weight > 0; })) {
    return weights;
  }
  refuse(fmt::format("{}: the weights of all {} samples are 0", path, weights.size()));
}

BlendPart parse_blend_part(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (const std::string shown = shown_path(text); shown != text && equals != std::string::npos) {
    // Text behind the last "=" may belong to the query of a signed URL.
    if (!number_in(std::string_view(text).substr(equals + 1))) {
      refuse(in_quotes(shown) + ": there is no weight behind the address, as in =3");
    }
  }
  if (equals == std::string::npos || equals == 0) {
    refuse(in_quotes(text) + " is not PATH=WEIGHT, as in data/photos=3");
  }
  const std::string_view written = std::string_view(text).substr(equals + 1);
  const auto weight = number_in(written);
  if (!weight) refuse(in_quotes(text) + ": the weight " + in_quotes(written) + " is not a number");
  if (!std::isfinite(*weight) || *weight <= 0) {
    refuse(fmt::format("{}: the weight is {}, must be a finite number above 0", in_quotes(text),
                       written));
  }
  return {text.substr(0, equals), *weight};
}

}  // namespace stoker
