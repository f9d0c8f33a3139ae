#include "tools/data/sample_keys.h"

#include <algorithm>
#include <string_view>

#include "pipeline/files/digest.h"

namespace stoker {
namespace {

std::string safe_part(std::string_view part) {
  if (part.empty() || part == "." || part == "..") return "_";
  return (part.starts_with("__") ? "x" : "") + std::string(part);
}

// Returns the key before ids are added.
std::string plain_key(const Source& source, SampleId id) {
  const std::string name = source.name(id);
  std::string key;
  size_t at = 0;
  for (size_t slash; (slash = name.find('/', at)) != std::string::npos; at = slash + 1) {
    key += safe_part(std::string_view(name).substr(at, slash - at)) + "/";
  }
  std::string last = name.substr(at);
  const size_t dot = last.rfind('.');
  const bool is_file = source.encoding() == SampleEncoding::image_file;
  // The dot of ".jpg" begins a name, not an extension.
  if (is_file && dot != std::string::npos && dot > 0) last.resize(dot);
  std::replace(last.begin(), last.end(), '.', '_');
  return key + safe_part(last);
}

}  // namespace

SampleKeys::SampleKeys(const Source& source) : source_(source) {
  digests_.reserve(static_cast<size_t>(source.size()));
  for (SampleId id = 0; id < source.size(); ++id) {
    digests_.push_back(text_digest(plain_key(source, id)));
  }
  std::sort(digests_.begin(), digests_.end());
}

bool SampleKeys::is_taken(const std::string& key) const {
  return std::binary_search(digests_.begin(), digests_.end(), text_digest(key));
}

std::string SampleKeys::key(SampleId id) const {
  std::string key = plain_key(source_, id);
  const auto [first, last] = std::equal_range(digests_.begin(), digests_.end(), text_digest(key));
  if (last - first == 1) return key;
  // Two keys with an id never are the same, because their ids differ.
  do {
    key += "-" + std::to_string(id);
  } while (is_taken(key));
  return key;
}

}  // namespace stoker
