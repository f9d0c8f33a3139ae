#include "pipeline/source/format/tar_targets.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "pipeline/source/format/npy.h"
#include "pipeline/source/format/safetensors.h"
#include "pipeline/source/format/text_value.h"

namespace stoker {
namespace {

// A column has 256 MiB of one sample at most, and a header comes before it.
constexpr int64_t kLargestArray = (int64_t{1} << 28) + (1 << 16);

bool is_field_of_json(std::string_view field) {
  return field.starts_with(kJsonPrefix) && field.size() > kJsonPrefix.size();
}

bool is_array(std::string_view extension) {
  return extension == "npy" || extension.ends_with(".npy");
}

}  // namespace

size_t tensor_at(std::string_view field) {
  constexpr std::string_view kInfix = "safetensors:";
  const size_t at = field.find(kInfix), name_at = at + kInfix.size();
  const bool begins = at == 0 || (at != std::string_view::npos && field[at - 1] == '.');
  return begins && name_at < field.size() ? name_at : std::string_view::npos;
}

TarTargets::TarTargets(BlobReader& blob, const FieldChoice& fields)
    : blob_(blob), fields_(fields.targets), own_parts_(fields_.size()), found_(fields_.size()) {
  for (size_t i = 0; i < fields_.size(); ++i) {
    const std::string& field = fields_[i].field;
    wants_json_ = wants_json_ || is_json(i);
    const size_t tensor = is_json(i) ? std::string::npos : tensor_at(field);
    extensions_.push_back(lower_case(field.substr(0, std::min(tensor, field.size() + 1) - 1)));
    tensors_.push_back(tensor == std::string::npos ? "" : field.substr(tensor));
    if (is_json(i) || is_array(extensions_[i]) || fields_[i].is_text() || !tensors_[i].empty()) {
      continue;
    }
    blob.fail(0, "a tar has no target field " + quoted_name(field) +
                     ": a target is json:FIELD, npy or NAME.npy, NAME.safetensors:TENSOR, or a "
                     "text (EXTENSION:text)");
  }
}

bool TarTargets::is_json(size_t target) const { return is_field_of_json(fields_[target].field); }

void TarTargets::begin_key() {
  json_part_.found = false;
  for (Part& part : own_parts_) part.found = false;
}

void TarTargets::take(const TarMember& member, std::string_view name, std::string_view extension) {
  if (wants_json_ && extension == "json") {
    set(json_part_, member, name);
    read_json(member);
  }
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (is_json(i) || extension != extensions_[i]) continue;
    set(own_parts_[i], member, name);
    found_[i].clear();
    found_[i].offset = member.data_at;
    const std::string problem = read_member(member, i);
    if (!problem.empty()) refuse(own_parts_[i], i, problem);
  }
}

void TarTargets::set(Part& part, const TarMember& member, std::string_view name) const {
  if (part.found) {
    blob_.fail(member.header_at, quoted_name(part.name) + " and " + quoted_name(name) +
                                     " are one key's, and have one extension");
  }
  part = {true, std::string(name), member.data_at, ""};
}

void TarTargets::read_json(const TarMember& member) {
  if (member.size > kLongestText) {
    json_part_.problem =
        "has " + std::to_string(member.size) + " bytes; at most " + std::to_string(kLongestText);
    return;
  }
  json_text_ = as_text(blob_.read(member.data_at, member.size, "a target"));
}

// A member is read where it stands: its bytes need not be kept until the key ends. Returns "" or
// what is wrong.
std::string TarTargets::read_member(const TarMember& member, size_t target) {
  const bool is_text = fields_[target].is_text();
  const int64_t most = is_text ? kLongestText : kLargestArray;
  if (member.size > most) {
    return "has " + std::to_string(member.size) + " bytes; at most " +
           (is_text ? std::to_string(most) : "256 MiB");
  }
  const auto file = blob_.read(member.data_at, member.size, "a target");
  if (!tensors_[target].empty()) return read_safetensors(file, tensors_[target], found_[target]);
  if (!is_text) return read_npy(file, found_[target]);
  found_[target].add_text(as_text(file));
  return found_[target].problem;
}

void TarTargets::finish_json() {
  nlohmann::json json;
  std::string problem =
      json_part_.found ? json_part_.problem : "is not there: its key has no .json";
  if (problem.empty()) {
    json = nlohmann::json::parse(json_text_, nullptr, false);
    if (json.is_discarded()) problem = "cannot be read: that is no JSON";
  }
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (!is_json(i)) continue;
    found_[i].clear();
    found_[i].offset = json_part_.data_at;
    if (!problem.empty()) {
      refuse(json_part_, i, problem);
    } else {
      finish_json_field(json, i);
    }
  }
}

void TarTargets::finish_json_field(const nlohmann::json& json, size_t target) {
  const std::string field = fields_[target].field.substr(kJsonPrefix.size());
  const nlohmann::json* const value = find_json_field(json, field);
  if (value == nullptr) {
    return refuse(json_part_, target, "is not there: no field " + quoted_name(field));
  }
  const std::string problem = read_field_json(fields_[target], *value, found_[target]);
  if (!problem.empty()) refuse(json_part_, target, problem);
}

std::span<const FoundTarget> TarTargets::finish(std::string_view image, int64_t key_at) {
  for (size_t i = 0; i < fields_.size(); ++i) {
    const Part& part = is_json(i) ? json_part_ : own_parts_[i];
    if (part.found) continue;
    const std::string problem =
        "its key has no ." + (is_json(i) ? std::string("json") : extensions_[i]);
    if (!fields_[i].varies) {
      blob_.fail(key_at, quoted_name(image) + " has no target " + quoted_name(fields_[i].name) +
                             ": " + problem);
    }
    found_[i].clear();
    found_[i].problem = "is not there: " + problem;
  }
  if (wants_json_) finish_json();
  return found_;
}

// A sample that has a target of another kind must have all of it.
void TarTargets::refuse(const Part& part, size_t target, const std::string& problem) {
  if (fields_[target].varies) {
    found_[target].problem = problem;
    return;
  }
  blob_.fail(part.data_at, "target " + quoted_name(fields_[target].name) + " in " +
                               quoted_name(part.name) + " " + problem);
}

}  // namespace stoker
