#include "pipeline/source/format/mds_target.h"

#include <algorithm>
#include <string_view>

#include "pipeline/files/printable_name.h"
#include "pipeline/source/format/little_endian.h"
#include "pipeline/source/format/text_value.h"

namespace stoker {
namespace {

constexpr std::string_view kArrayWord = "ndarray";

// Returns the extents in "2,3"; nothing if there are none, or one is no number above 0.
std::vector<int64_t> parse_shape(std::string_view text) {
  std::vector<int64_t> shape;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const auto extent = parse_integer(trimmed(text.substr(at, end - at)));
    if (!extent || *extent < 1) return {};
    shape.push_back(*extent);
    at = end + 1;
  }
  return shape;
}

std::optional<MdsLayout> parse_array(std::string_view text) {
  const size_t colon = text.find(':');
  const auto form = number_form(text.substr(0, colon));
  if (!form || *form == NumberForm::boolean || colon == std::string_view::npos) return std::nullopt;
  std::vector<int64_t> shape = parse_shape(text.substr(colon + 1));
  if (shape.empty()) return std::nullopt;
  return MdsLayout{*form, std::move(shape)};
}

// Returns nothing for text, and for what is no number.
std::optional<MdsLayout> layout_of(const std::string& encoding) {
  constexpr std::string_view kArray = "ndarray:";
  if (encoding.starts_with(kArray)) {
    return parse_array(std::string_view(encoding).substr(kArray.size()));
  }
  if (encoding == "int") return MdsLayout{NumberForm::int64, {}};
  const auto form = number_form(encoding);
  if (!form || *form == NumberForm::boolean) return std::nullopt;
  return MdsLayout{*form, {}};
}

// Takes the type from the front of a value that says it.
std::optional<NumberForm> take_form(std::span<const uint8_t>& value) {
  constexpr std::pair<uint8_t, NumberForm> kForms[] = {
      {8, NumberForm::uint8},  {9, NumberForm::int8},     {16, NumberForm::uint16},
      {17, NumberForm::int16}, {18, NumberForm::float16}, {32, NumberForm::uint32},
      {33, NumberForm::int32}, {34, NumberForm::float32}, {64, NumberForm::uint64},
      {65, NumberForm::int64}, {66, NumberForm::float64}};
  if (value.empty()) return std::nullopt;
  const auto* const found =
      std::ranges::find(kForms, value[0], &std::pair<uint8_t, NumberForm>::first);
  if (found == std::end(kForms)) return std::nullopt;
  value = value.subspan(1);
  return found->second;
}

// Takes the shape from the front of a value that says it: how many extents, and of 1, 2, 4 or 8
// bytes, and these. Returns false if it is none.
bool take_shape(std::span<const uint8_t>& value, std::vector<int64_t>& shape) {
  if (value.empty()) return false;
  const size_t axes = value[0] >> 2, bytes = size_t{1} << (value[0] & 3);
  if (axes == 0 || value.size() - 1 < axes * bytes) return false;
  for (size_t i = 0; i < axes; ++i) {
    const uint64_t extent = read_little_endian(value.subspan(1 + i * bytes, bytes));
    if (extent == 0 || extent > INT64_MAX) return false;
    shape.push_back(static_cast<int64_t>(extent));
  }
  value = value.subspan(1 + axes * bytes);
  return true;
}

bool is_text(const std::string& encoding) {
  return encoding == "str_int" || encoding == "str_float";
}

// Returns whether so many bytes are all numbers of an array.
bool fills(const MdsLayout& layout, int64_t bytes) {
  int64_t numbers = bytes / bytes_of(layout.form);
  if (bytes % bytes_of(layout.form) != 0) return false;
  for (const int64_t extent : layout.shape) {
    if (numbers % extent != 0) return false;
    numbers /= extent;
  }
  return numbers == 1;
}

}  // namespace

std::string describe(const MdsColumn& column) {
  constexpr size_t kMax = 60;
  return quoted_name(column.name) + " (" + printable_name(column.encoding.substr(0, kMax)) + ")";
}

bool is_array_encoding(const std::string& encoding) {
  return encoding == kArrayWord || encoding.starts_with(std::string(kArrayWord) + ":");
}

std::string read_mds_array(const std::string& encoding, std::span<const uint8_t> value,
                           FoundTarget& out) {
  out.clear();
  const std::string words = encoding.substr(std::min(encoding.size(), kArrayWord.size() + 1));
  const size_t colon = words.find(':');
  std::optional<NumberForm> form = number_form(words.substr(0, colon));
  if (!words.empty() && (!form || *form == NumberForm::boolean)) return "has no such type";
  if (words.empty()) form = take_form(value);
  if (!form) return "does not say its type";
  const bool has_shape = colon != std::string::npos;
  if (has_shape) out.shape = parse_shape(std::string_view(words).substr(colon + 1));
  if (has_shape ? out.shape.empty() : !take_shape(value, out.shape))
    return "does not say its shape";
  if (!fills({*form, out.shape}, std::ssize(value))) {
    return "has " + std::to_string(value.size()) + " bytes of numbers, which are not " +
           shape_text(out.shape);
  }
  return append_numbers(*form, value, out);
}

bool is_target_encoding(const std::string& encoding) {
  return is_text(encoding) || layout_of(encoding);
}

void MdsTargets::add(const std::vector<MdsColumn>& columns, size_t column) {
  const std::string& encoding = columns[column].encoding;
  columns_.push_back({column, encoding, layout_of(encoding)});
  found_.emplace_back();
}

std::string MdsTargets::read(const Column& column, const TargetField& field, const MdsRange& place,
                             FoundTarget& out) {
  const auto bytes = blob_.read(place.offset, place.length, "a target");
  if (field.is_text()) return read_field_text(field, as_text(bytes), out);
  if (!column.layout && is_array_encoding(column.encoding)) {
    return read_mds_array(column.encoding, bytes, out);
  }
  if (!column.layout) {
    std::string problem = read_text_numbers(as_text(bytes), out);
    if (problem.empty() && !out.shape.empty()) problem = "has several numbers";
    out.type = column.encoding == "str_int" ? TargetType::int64 : TargetType::float32;
    return problem;
  }
  out.clear();
  if (!fills(*column.layout, place.length)) {
    return "has " + std::to_string(place.length) + " bytes, which its encoding does not make";
  }
  out.shape = column.layout->shape;
  return append_numbers(column.layout->form, bytes, out);
}

std::span<const FoundTarget> MdsTargets::read(size_t sample, const std::vector<MdsRange>& places) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    const MdsRange& place = places[column.place];
    found_[i].offset = place.offset;
    const std::string problem = read(column, fields_.targets[i], place, found_[i]);
    found_[i].problem = problem;
    if (problem.empty() || fields_.targets[i].varies) continue;
    const std::string& name = fields_.targets[i].name;
    blob_.fail(place.offset, "target " + describe({name, column.encoding, std::nullopt}) +
                                 " of sample " + std::to_string(sample) + " " + problem);
  }
  return found_;
}

}  // namespace stoker
