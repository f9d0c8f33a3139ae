#include "pipeline/source/format/npy.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "pipeline/source/format/little_endian.h"
#include "pipeline/source/format/number_bytes.h"
#include "pipeline/source/format/text_value.h"

namespace stoker {
namespace {

constexpr std::array<std::pair<std::string_view, NumberForm>, 14> kNpyForms = {{
    {"|b1", NumberForm::boolean},
    {"|u1", NumberForm::uint8},
    {"<u2", NumberForm::uint16},
    {"<u4", NumberForm::uint32},
    {"<u8", NumberForm::uint64},
    {"|i1", NumberForm::int8},
    {"<i2", NumberForm::int16},
    {"<i4", NumberForm::int32},
    {"<i8", NumberForm::int64},
    {"<f2", NumberForm::float16},
    {"<f4", NumberForm::float32},
    {"<f8", NumberForm::float64},
    // NumPy has no name for bfloat16: it writes that of `ml_dtypes` as two bytes of no type.
    {"|V2", NumberForm::bfloat16},
    {"<V2", NumberForm::bfloat16},
}};

// Finds the header and what is behind it. Returns "" or what is wrong.
std::string split(std::span<const uint8_t> file, std::string_view& header,
                  std::span<const uint8_t>& numbers) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  const size_t version_at = kMagic.size(), length_at = version_at + 2;
  if (!as_text(file).starts_with(kMagic) || file.size() < length_at) return "is no .npy file";
  const int version = file[version_at];
  if (version < 1 || version > 3) {
    return "is a .npy file of version " + std::to_string(version) + "; 1 to 3 are read";
  }
  const size_t length_bytes = version == 1 ? 2 : 4;
  const size_t header_at = length_at + length_bytes;
  if (file.size() < header_at) return "ends inside its header";
  const size_t length = read_little_endian(file.subspan(length_at, length_bytes));
  if (length > file.size() - header_at) return "ends inside its header";
  header = as_text(file.subspan(header_at, length));
  numbers = file.subspan(header_at + length);
  return "";
}

// Returns what stands behind a key of the dictionary; "" if the key is not there.
std::string_view behind(std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  return at == std::string_view::npos ? std::string_view()
                                      : trimmed(header.substr(at + key.size()));
}

// A type is a text; records have a list there, which is shown as it is.
std::string_view descr_of(std::string_view header) {
  std::string_view rest = behind(header, "'descr':");
  if (!rest.starts_with('\'')) return rest.substr(0, rest.find(", 'fortran_order'"));
  rest.remove_prefix(1);
  return rest.substr(0, rest.find('\''));
}

std::optional<NumberForm> form_of_descr(std::string_view descr) {
  for (const auto& [name, form] : kNpyForms) {
    if (descr == name) return form;
  }
  return std::nullopt;
}

// Reads "(3, 4)", "(3,)" or "()". Returns false for anything else.
bool read_shape(std::string_view text, std::vector<int64_t>& shape) {
  const size_t end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos) return false;
  std::string_view rest = trimmed(text.substr(1, end - 1));
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const auto extent = parse_integer(trimmed(rest.substr(0, comma)));
    if (!extent || *extent < 0) return false;
    shape.push_back(*extent);
    rest = trimmed(rest.substr(std::min(comma + 1, rest.size())));
  }
  return true;
}

// Returns the bytes that the array takes; more than `most` is nothing.
std::optional<size_t> bytes_of_array(const std::vector<int64_t>& shape, NumberForm form,
                                     size_t most) {
  size_t bytes = static_cast<size_t>(bytes_of(form));
  for (const int64_t extent : shape) {
    const auto factor = static_cast<size_t>(extent);
    if (factor > 0 && bytes > most / factor) return std::nullopt;
    bytes *= factor;
  }
  return bytes;
}

}  // namespace

std::string read_npy(std::span<const uint8_t> file, FoundTarget& out) {
  out.clear();
  std::string_view header;
  std::span<const uint8_t> numbers;
  std::string problem = split(file, header, numbers);
  if (!problem.empty()) return problem;
  const std::string_view descr = descr_of(header);
  const auto form = form_of_descr(descr);
  if (!form) {
    return "has the type " + quoted_name(descr) +
           "; bool, integers and floats of 2 to 8 bytes are read, the low byte first";
  }
  if (!read_shape(behind(header, "'shape':"), out.shape)) return "has a header without a shape";
  const bool is_c = behind(header, "'fortran_order':").starts_with("False");
  if (!is_c && out.shape.size() > 1) {
    return "is in Fortran's order; write it with numpy.ascontiguousarray()";
  }
  if (bytes_of_array(out.shape, *form, numbers.size()) != numbers.size()) {
    return "has " + std::to_string(numbers.size()) +
           " bytes behind its header, which its shape and type do not make";
  }
  return append_numbers(*form, numbers, out);
}

}  // namespace stoker
