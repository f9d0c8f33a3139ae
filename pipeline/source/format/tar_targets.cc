#include "pipeline/source/format/tar_targets.h"

#include <nlohmann/json.hpp>

#include "pipeline/source/format/npy.h"
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

std::vector<TargetField> with_lower_extensions(std::vector<TargetField> fields) {
  for (TargetField& target : fields) {
    if (!is_field_of_json(target.field)) target.field = lower_case(target.field);
  }
  return fields;
}

}  // namespace

TarTargets::TarTargets(BlobReader& blob, const FieldChoice& fields)
    : blob_(blob),
      fields_(with_lower_extensions(fields.targets)),
      array_parts_(fields_.size()),
      found_(fields_.size()) {
  for (size_t i = 0; i < fields_.size(); ++i) {
    wants_json_ = wants_json_ || is_json(i);
    if (is_json(i) || is_array(fields_[i].field)) continue;
    blob.fail(0, "a tar has no target field " + quoted_name(fields_[i].field) +
                     ": a target is json:FIELD, npy or NAME.npy");
  }
}

bool TarTargets::is_json(size_t target) const { return is_field_of_json(fields_[target].field); }

void TarTargets::begin_key() {
  json_part_.found = false;
  for (Part& part : array_parts_) part.found = false;
}

void TarTargets::take(const TarMember& member, std::string_view name, std::string_view extension) {
  if (wants_json_ && extension == "json") {
    set(json_part_, member, name);
    read_json(member);
  }
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (is_json(i) || extension != fields_[i].field) continue;
    set(array_parts_[i], member, name);
    read_array(member, i);
  }
}

void TarTargets::set(Part& part, const TarMember& member, std::string_view name) const {
  if (part.found) {
    blob_.fail(member.header_at, quoted_name(part.name) + " and " + quoted_name(name) +
                                     " are one key's, and have one extension");
  }
  part = {true, std::string(name), member.data_at};
}

void TarTargets::read_json(const TarMember& member) {
  if (member.size > kLongestText) {
    blob_.fail(member.header_at, quoted_name(json_part_.name) + " has " +
                                     std::to_string(member.size) + " bytes; at most " +
                                     std::to_string(kLongestText));
  }
  json_text_ = as_text(blob_.read(member.data_at, member.size, "a target"));
}

// An array is read where it stands: its bytes need not be kept until the key ends.
void TarTargets::read_array(const TarMember& member, size_t target) {
  const Part& part = array_parts_[target];
  if (member.size > kLargestArray) {
    fail(part, target, "has " + std::to_string(member.size) + " bytes; at most 256 MiB");
  }
  const auto file = blob_.read(member.data_at, member.size, "a target");
  const std::string problem = read_npy(file, found_[target]);
  found_[target].offset = member.data_at;
  if (!problem.empty()) fail(part, target, problem);
}

void TarTargets::finish_json() {
  const nlohmann::json json = nlohmann::json::parse(json_text_, nullptr, false);
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (!is_json(i)) continue;
    if (json.is_discarded()) fail(json_part_, i, "cannot be read: that is no JSON");
    const std::string field = fields_[i].field.substr(kJsonPrefix.size());
    const nlohmann::json* const value = find_json_field(json, field);
    if (value == nullptr) fail(json_part_, i, "is not there: no field " + quoted_name(field));
    const std::string problem = read_json_numbers(*value, found_[i]);
    if (!problem.empty()) fail(json_part_, i, problem);
    found_[i].offset = json_part_.data_at;
  }
}

std::span<const FoundTarget> TarTargets::finish(std::string_view image, int64_t key_at) {
  for (size_t i = 0; i < fields_.size(); ++i) {
    const Part& part = is_json(i) ? json_part_ : array_parts_[i];
    if (part.found) continue;
    blob_.fail(key_at, quoted_name(image) + " has no target " + quoted_name(fields_[i].name) +
                           ": its key has no ." + (is_json(i) ? "json" : fields_[i].field));
  }
  if (wants_json_) finish_json();
  return found_;
}

void TarTargets::fail(const Part& part, size_t target, const std::string& problem) const {
  blob_.fail(part.data_at, "target " + quoted_name(fields_[target].name) + " in " +
                               quoted_name(part.name) + " " + problem);
}

}  // namespace stoker
