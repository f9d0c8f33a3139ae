// The facts of a source's samples, for tests to compare.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pipeline/source.h"

namespace stoker {

inline std::vector<std::string> names_of(const Source& source) {
  std::vector<std::string> names;
  for (SampleId id = 0; id < source.size(); ++id) names.push_back(source.name(id));
  return names;
}

inline std::vector<int> labels_of(const Source& source) {
  std::vector<int> labels;
  for (SampleId id = 0; id < source.size(); ++id) labels.push_back(source.label(id));
  return labels;
}

// The sample's bytes, or "error: " and the reason.
inline std::string text_of(const Source& source, SampleId id) {
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  const ReadStatus status = source.read(id, buffer, bytes);
  return status.ok ? std::string(bytes.begin(), bytes.end()) : "error: " + status.message;
}

// The sample's bytes as read_cached() gives them, or "not cached".
inline std::string cached_text_of(const Source& source, SampleId id) {
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  return source.storage().read_cached(id, buffer, bytes) ? std::string(bytes.begin(), bytes.end())
                                                         : "not cached";
}

}  // namespace stoker
