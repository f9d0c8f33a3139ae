// Numbers as typed formats store them: a few bytes each, the low byte first. Functions of their
// arguments alone. Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "pipeline/source/format/found_target.h"

namespace stoker {

enum class NumberForm : uint8_t {
  boolean,  // a byte
  uint8,
  uint16,
  uint32,
  uint64,
  int8,
  int16,
  int32,
  int64,
  float16,
  float32,
  float64,
  bfloat16,
};

// Returns the form with one of NumPy's names ("float32").
std::optional<NumberForm> number_form(std::string_view name);
int64_t bytes_of(NumberForm form);
// The type of a column of such numbers by itself: FoundTarget::type.
TargetType target_type(NumberForm form);

// Appends all numbers in `bytes`, whose count is a multiple of bytes_of(form), and sets the type.
// Returns "" or what is wrong ("has the value 18446744073709551615, which has more than 63 bits").
std::string append_numbers(NumberForm form, std::span<const uint8_t> bytes, FoundTarget& out);

}  // namespace stoker
