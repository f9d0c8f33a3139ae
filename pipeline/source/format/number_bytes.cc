#include "pipeline/source/format/number_bytes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace stoker {
namespace {

static_assert(std::endian::native == std::endian::little);

struct FormRow {
  NumberForm form;
  const char* name;
  int64_t bytes;
  TargetType type;
};

// In the order of NumberForm.
constexpr FormRow kNumberForms[] = {{NumberForm::boolean, "bool", 1, TargetType::uint8},
                                    {NumberForm::uint8, "uint8", 1, TargetType::uint8},
                                    {NumberForm::uint16, "uint16", 2, TargetType::int64},
                                    {NumberForm::uint32, "uint32", 4, TargetType::int64},
                                    {NumberForm::uint64, "uint64", 8, TargetType::int64},
                                    {NumberForm::int8, "int8", 1, TargetType::int64},
                                    {NumberForm::int16, "int16", 2, TargetType::int64},
                                    {NumberForm::int32, "int32", 4, TargetType::int64},
                                    {NumberForm::int64, "int64", 8, TargetType::int64},
                                    {NumberForm::float16, "float16", 2, TargetType::float32},
                                    {NumberForm::float32, "float32", 4, TargetType::float32},
                                    {NumberForm::float64, "float64", 8, TargetType::float32},
                                    {NumberForm::bfloat16, "bfloat16", 2, TargetType::float32}};

const FormRow& row_of(NumberForm form) { return kNumberForms[static_cast<size_t>(form)]; }

// IEEE 754's binary16: a sign, 5 bits of exponent, 10 of fraction.
double value_of_half(uint16_t bits) {
  constexpr int kFractionBits = 10, kBias = 15, kInfinite = 31;
  const int exponent = bits >> kFractionBits & kInfinite;
  const int fraction = bits & ((1 << kFractionBits) - 1);
  double value = std::ldexp(fraction, 1 - kBias - kFractionBits);
  if (exponent == kInfinite) {
    value = fraction == 0 ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent > 0) {
    value = std::ldexp(fraction + (1 << kFractionBits), exponent - kBias - kFractionBits);
  }
  return (bits & 0x8000u) != 0 ? -value : value;
}

// Calls add() with every number of type T in `bytes`.
template <class T, class Add>
void for_each(std::span<const uint8_t> bytes, Add&& add) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    add(value);
  }
}

template <class T>
void append_integers(std::span<const uint8_t> bytes, FoundTarget& out) {
  for_each<T>(bytes, [&](T value) { out.add(static_cast<int64_t>(value)); });
}

std::string append_large(std::span<const uint8_t> bytes, FoundTarget& out) {
  std::string problem;
  for_each<uint64_t>(bytes, [&](uint64_t value) {
    if (value > INT64_MAX && problem.empty()) {
      problem = "has the value " + std::to_string(value) + ", which has more than 63 bits";
    }
    out.add(static_cast<int64_t>(value));
  });
  return problem;
}

}  // namespace

std::optional<NumberForm> number_form(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kNumberForms), std::end(kNumberForms),
                                         [&](const FormRow& row) { return row.name == name; });
  return found == std::end(kNumberForms) ? std::nullopt : std::optional(found->form);
}

int64_t bytes_of(NumberForm form) { return row_of(form).bytes; }

TargetType target_type(NumberForm form) { return row_of(form).type; }

std::string append_numbers(NumberForm form, std::span<const uint8_t> bytes, FoundTarget& out) {
  out.type = target_type(form);
  switch (form) {
    case NumberForm::boolean:
      for (const uint8_t byte : bytes) out.add(int64_t{byte != 0});
      break;
    case NumberForm::uint8:
      append_integers<uint8_t>(bytes, out);
      break;
    case NumberForm::uint16:
      append_integers<uint16_t>(bytes, out);
      break;
    case NumberForm::uint32:
      append_integers<uint32_t>(bytes, out);
      break;
    case NumberForm::uint64:
      return append_large(bytes, out);
    case NumberForm::int8:
      append_integers<int8_t>(bytes, out);
      break;
    case NumberForm::int16:
      append_integers<int16_t>(bytes, out);
      break;
    case NumberForm::int32:
      append_integers<int32_t>(bytes, out);
      break;
    case NumberForm::int64:
      append_integers<int64_t>(bytes, out);
      break;
    case NumberForm::float16:
      for_each<uint16_t>(bytes, [&](uint16_t value) { out.add(value_of_half(value)); });
      break;
    case NumberForm::float32:
      for_each<float>(bytes, [&](float value) { out.add(double{value}); });
      break;
    case NumberForm::float64:
      for_each<double>(bytes, [&](double value) { out.add(value); });
      break;
    case NumberForm::bfloat16:  // the high half of a float32
      for_each<uint16_t>(bytes, [&](uint16_t value) {
        out.add(double{std::bit_cast<float>(uint32_t{value} << 16)});
      });
      break;
  }
  return "";
}

}  // namespace stoker
