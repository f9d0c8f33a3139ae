#include "pipeline/source/blob/target_values.h"

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>

#include "staging/normalise.h"

namespace stoker {
namespace {

std::string shortest_text(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// Sets `out` to a number; returns false if the type cannot hold it.
template <std::integral T>
bool convert(int64_t value, T& out) {
  if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) return false;
  out = static_cast<T>(value);
  return true;
}

// Integers that were written with a fraction of 0 are integers, as far as a double has all of them.
template <std::integral T>
bool convert(double value, T& out) {
  constexpr double kExact = int64_t{1} << 53;
  const bool is_integer = std::abs(value) <= kExact && value == std::trunc(value);
  return is_integer && convert(static_cast<int64_t>(value), out);
}

bool convert(int64_t value, float& out) {
  out = static_cast<float>(value);
  return true;
}

bool convert(double value, float& out) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (std::isfinite(value) && std::abs(value) > kLargest) return false;
  out = static_cast<float>(value);
  return true;
}

// Numbers of 16 bits, to which others are rounded.
struct Half {
  uint16_t bits;
};
struct BrainHalf {
  uint16_t bits;
};

template <class Number>
bool convert(Number value, Half& out) {
  float wide;
  if (!convert(value, wide)) return false;
  out.bits = fp16_bits(wide);
  constexpr uint16_t kInfinite = 0x7c00;
  return !std::isfinite(wide) || (out.bits & 0x7fff) != kInfinite;
}

template <class Number>
bool convert(Number value, BrainHalf& out) {
  float wide;
  if (!convert(value, wide)) return false;
  out.bits = bf16_bits(wide);
  return true;
}

template <class T, class Number>
std::string append_numbers_as(const TargetColumn& column, const std::vector<Number>& numbers,
                              std::vector<std::byte>& out) {
  const size_t before = out.size();
  out.resize(before + numbers.size() * sizeof(T));
  std::byte* to = out.data() + before;
  for (size_t i = 0; i < numbers.size(); ++i, to += sizeof(T)) {
    T value;
    if (!convert(numbers[i], value)) {
      std::string number;
      if constexpr (std::is_same_v<Number, double>) {
        number = shortest_text(numbers[i]);
      } else {
        number = std::to_string(numbers[i]);
      }
      return "has the value " + number + (numbers.size() > 1 ? " at " + std::to_string(i) : "") +
             ", which is no " + name_of(column.type);
    }
    std::memcpy(to, &value, sizeof value);
  }
  return "";
}

template <class T>
std::string append_numbers_as(const TargetColumn& column, const FoundTarget& found,
                              std::vector<std::byte>& out) {
  return found.reals.empty() ? append_numbers_as<T>(column, found.integers, out)
                             : append_numbers_as<T>(column, found.reals, out);
}

}  // namespace

TargetColumn column_of(const TargetField& field, const FoundTarget& found) {
  if (field.varies) return {field.name, *field.type, {}, true};
  return {field.name, field.type.value_or(found.type), found.shape};
}

std::string append_varying(const TargetColumn& column, const FoundTarget& found,
                           std::vector<std::byte>& out) {
  // More is no caption and no list of tokens, and would fill the index.
  constexpr size_t kMaxVarying = size_t{1} << 24;
  const size_t bytes =
      found.texts.size() + found.size() * static_cast<size_t>(bytes_of(column.type));
  if (bytes > kMaxVarying) {
    return "has " + std::to_string(bytes) + " bytes; at most " + std::to_string(kMaxVarying);
  }
  if (column.type == TargetType::text) {
    const auto texts = std::as_bytes(std::span(found.texts));
    out.insert(out.end(), texts.begin(), texts.end());
    return "";
  }
  if (found.shape.size() > 1)
    return "has the shape " + shape_text(found.shape) + ", and is no list";
  TargetColumn as_found = column;
  as_found.shape = found.shape;
  return append_target(as_found, found, out);
}

std::string append_target(const TargetColumn& column, const FoundTarget& found,
                          std::vector<std::byte>& out) {
  if (found.shape != column.shape) {
    return "has the shape " + shape_text(found.shape) + ", and the first sample has " +
           shape_text(column.shape);
  }
  switch (column.type) {
    case TargetType::uint8:
      return append_numbers_as<uint8_t>(column, found, out);
    case TargetType::int32:
      return append_numbers_as<int32_t>(column, found, out);
    case TargetType::int64:
      return append_numbers_as<int64_t>(column, found, out);
    case TargetType::float32:
      return append_numbers_as<float>(column, found, out);
    case TargetType::float16:
      return append_numbers_as<Half>(column, found, out);
    case TargetType::bfloat16:
      return append_numbers_as<BrainHalf>(column, found, out);
    case TargetType::text:
      break;
  }
  return "has texts that are no numbers";
}

}  // namespace stoker
