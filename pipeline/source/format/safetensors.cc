#include "pipeline/source/format/safetensors.h"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "pipeline/source/format/little_endian.h"
#include "pipeline/source/format/number_bytes.h"
#include "pipeline/source/format/text_value.h"

namespace stoker {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::pair<std::string_view, NumberForm>, 13> kTensorForms = {{
    {"BOOL", NumberForm::boolean},
    {"U8", NumberForm::uint8},
    {"U16", NumberForm::uint16},
    {"U32", NumberForm::uint32},
    {"U64", NumberForm::uint64},
    {"I8", NumberForm::int8},
    {"I16", NumberForm::int16},
    {"I32", NumberForm::int32},
    {"I64", NumberForm::int64},
    {"F16", NumberForm::float16},
    {"F32", NumberForm::float32},
    {"F64", NumberForm::float64},
    {"BF16", NumberForm::bfloat16},
}};

std::optional<NumberForm> form_of_tensor(const Json& tensor) {
  const auto dtype = tensor.find("dtype");
  if (dtype == tensor.end() || !dtype->is_string()) return std::nullopt;
  for (const auto& [name, form] : kTensorForms) {
    if (dtype->get_ref<const std::string&>() == name) return form;
  }
  return std::nullopt;
}

// Returns an array of integers from 0 on; nothing if the member is none.
std::optional<std::vector<int64_t>> naturals_of(const Json& tensor, const char* member) {
  const auto found = tensor.find(member);
  if (found == tensor.end() || !found->is_array()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Json& number : *found) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() > INT64_MAX) return std::nullopt;
    numbers.push_back(number.get<int64_t>());
  }
  return numbers;
}

std::string names_of_tensors(const Json& header) {
  constexpr size_t kEnough = 12;
  std::string names;
  size_t count = 0;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    if (++count > kEnough) return names + ", ...";
    names += (names.empty() ? "" : ", ") + quoted_name(name);
  }
  return names.empty() ? "nothing" : names;
}

// Whether a shape makes so many bytes.
bool makes(const std::vector<int64_t>& shape, NumberForm form, size_t bytes) {
  auto product = static_cast<size_t>(bytes_of(form));
  for (const int64_t extent : shape) {
    const auto factor = static_cast<size_t>(extent);
    if (factor > 0 && product > bytes / factor) return false;
    product *= factor;
  }
  return product == bytes;
}

}  // namespace

std::string read_safetensors(std::span<const uint8_t> file, const std::string& name,
                             FoundTarget& out) {
  constexpr size_t kHeaderLengthBytes = 8;
  out.clear();
  if (file.size() < kHeaderLengthBytes) return "is no .safetensors file";
  const uint64_t length = read_little_endian(file.first(kHeaderLengthBytes));
  if (length > static_cast<uint64_t>(kLongestText)) {
    return "has a header of " + std::to_string(length) + " bytes; at most " +
           std::to_string(kLongestText);
  }
  if (length > file.size() - kHeaderLengthBytes) return "ends inside its header";
  const Json header =
      Json::parse(as_text(file.subspan(kHeaderLengthBytes, length)), nullptr, false);
  if (!header.is_object()) return "has a header that is no JSON object";
  const auto found = header.find(name);
  if (found == header.end()) {
    return "has no tensor " + quoted_name(name) + "; it has " + names_of_tensors(header);
  }
  const auto form = form_of_tensor(*found);
  if (!form) return "has a dtype for " + quoted_name(name) + " that is not read";
  const auto shape = naturals_of(*found, "shape"), ends = naturals_of(*found, "data_offsets");
  const auto numbers = file.subspan(kHeaderLengthBytes + length);
  if (!shape || !ends || ends->size() != 2 || (*ends)[0] > (*ends)[1] ||
      (*ends)[1] > std::ssize(numbers)) {
    return "says of " + quoted_name(name) + " where it has no bytes";
  }
  const auto bytes = numbers.subspan(static_cast<size_t>((*ends)[0]),
                                     static_cast<size_t>((*ends)[1] - (*ends)[0]));
  if (!makes(*shape, *form, bytes.size())) {
    return "has " + std::to_string(bytes.size()) + " bytes for " + quoted_name(name) +
           ", which its shape and dtype do not make";
  }
  out.shape = *shape;
  return append_numbers(*form, bytes, out);
}

}  // namespace stoker
