#include "pipeline/source/format/tar_objects.h"

#include <algorithm>

#include "pipeline/source/format/text_value.h"

namespace stoker {
namespace {

// Masks of many objects are long; a text of this length is read at once.
constexpr int64_t kLongestObjects = int64_t{64} << 20;

bool is_json_extension(std::string_view extension) {
  return extension == "json" || extension.ends_with(".json");
}

}  // namespace

TarObjects::TarObjects(BlobReader& blob, const ObjectField& wanted) : blob_(blob) {
  if (!wanted.is_wanted()) return;
  const size_t colon = wanted.field.find(':');
  extension_ = lower_case(wanted.field.substr(0, colon));
  if (!is_json_extension(extension_)) {
    blob.fail(0, "a tar has no objects in " + quoted_name(wanted.field) +
                     ": `objects_from` takes json, NAME.json or json:FIELD");
  }
  if (colon == std::string::npos) return;
  const std::string path = wanted.field.substr(colon + 1);
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('.', at), path.size());
    found_.json_path.push_back(path.substr(at, end - at));
    at = end + 1;
  }
}

void TarObjects::begin_key() {
  member_.clear();
  found_.json.clear();
  found_.problem.clear();
}

void TarObjects::take(const TarMember& member, std::string_view name, std::string_view extension) {
  if (!is_wanted() || extension != extension_) return;
  if (!member_.empty()) {
    blob_.fail(member.header_at, quoted_name(member_) + " and " + quoted_name(name) +
                                     " are one key's, and have one extension");
  }
  member_ = name;
  any_ = true;
  if (member.size > kLongestObjects) {
    found_.problem = quoted_name(name) + " has " + std::to_string(member.size) +
                     " bytes; at most " + std::to_string(kLongestObjects);
    return;
  }
  found_.json = as_text(blob_.read(member.data_at, member.size, "objects"));
  if (found_.json.empty()) found_.problem = quoted_name(name) + " is empty";
}

const FoundObjects* TarObjects::finish() {
  if (!is_wanted()) return nullptr;
  if (member_.empty()) found_.problem = "its key has no ." + extension_ + " with its objects";
  return &found_;
}

void TarObjects::finish_all(const std::string& extensions) const {
  if (!is_wanted() || any_) return;
  blob_.fail(0, "no key has ." + extension_ + " with its objects; the first key has " + extensions);
}

}  // namespace stoker
