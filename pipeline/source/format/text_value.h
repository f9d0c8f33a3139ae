// Text in blobs: names for messages, and labels and numbers that are written as text or as JSON.
// Functions of their arguments alone. Threads: any.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "pipeline/source/format/found_target.h"
#include "pipeline/source/format/sample_sink.h"

namespace stoker {

// No label and no header in a blob is longer than this, so that none of them fills the memory.
inline constexpr int64_t kLongestText = 1 << 20;

// Printable, in single quotes, and cut after some hundred bytes: a name for a message.
std::string quoted_name(std::string_view name);
inline std::string_view as_text(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
// Without white space around it.
std::string_view trimmed(std::string_view text);
// ASCII letters only; other bytes stay.
std::string lower_case(std::string_view text);
// The whole text as a decimal number; nothing if it is none, or has more than 63 bits.
std::optional<int64_t> parse_integer(std::string_view text);

// Sets `label` to a text that names a class; the text must outlive it. Returns "" or what is wrong
// ("is empty").
std::string set_text_label(std::string_view text, BlobLabel& label);
// Sets `label` to an integer or a text. The label's text lies in `value`. Returns "" or what is
// wrong ("is null, and no integer or text").
std::string set_json_label(const nlohmann::json& value, BlobLabel& label);
// Returns a value inside of objects, or null; a dot in `field` goes to an inner object.
const nlohmann::json* find_json_field(const nlohmann::json& object, const std::string& field);

// The numbers of targets. These return "" or what is wrong ("is empty"), and `out` may then have a
// part of the numbers.

// A decimal number, or several with spaces or semicolons between them: a single number, or a vector
// of that many. "nan", "inf" and "-inf" are numbers with a fraction.
std::string read_text_numbers(std::string_view text, FoundTarget& out);

// A number, or an array of numbers or of arrays that have one shape. true is 1, false is 0.
std::string read_json_numbers(const nlohmann::json& value, FoundTarget& out);

// The values of a field, as the field has them: texts, or numbers. An empty list is one if they
// vary.
std::string read_field_text(const TargetField& field, std::string_view text, FoundTarget& out);
// A text, or an array of texts.
std::string read_field_json(const TargetField& field, const nlohmann::json& value,
                            FoundTarget& out);

}  // namespace stoker
