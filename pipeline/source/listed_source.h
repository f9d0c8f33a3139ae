// A source of samples that a program lists itself: paths of files, encoded images in memory, or a
// mixture of both.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/source.h"

namespace stoker {

struct ListedSamples {
  // Both have an entry for each sample, or none at all. A sample with bytes is these bytes; another
  // one is the file at its path, which is relative to `root`.
  std::vector<std::span<const uint8_t>> bytes{};
  std::vector<std::string> paths{};
  std::shared_ptr<const void> owner{};  // of the bytes; it lives as long as the source
  std::vector<int32_t> labels{};        // one for each sample
  std::vector<std::string> class_names{};
  std::string root{};  // "": the current folder at the time of the call
};

// A sample's name is its path, or "#17" if it has none. Throws std::invalid_argument with the
// numbers: no samples, lists of different lengths, a sample without bytes and path, a label that is
// negative or has no class name; std::runtime_error if the root cannot be opened.
std::unique_ptr<Source> make_listed_source(ListedSamples samples);

}  // namespace stoker
