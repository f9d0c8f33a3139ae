// Shared by the fuzz targets of formats of blobs: the targets that they ask for, and checks of a
// sample's.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "pipeline/source/format/sample_sink.h"

namespace stoker {

// "LABEL,x,y": the label's field, then those of targets.
inline FieldChoice fuzz_choice(std::string_view image, std::string_view label_and_targets) {
  FieldChoice choice{std::string(image), "", {}};
  for (size_t at = 0, count = 0; at <= label_and_targets.size(); ++count) {
    const size_t end = std::min(label_and_targets.find(',', at), label_and_targets.size());
    const std::string field(label_and_targets.substr(at, end - at));
    if (count == 0) {
      choice.label = field;
    } else if (!field.empty()) {
      choice.targets.push_back({field, field, {}});
    }
    at = end + 1;
  }
  return choice;
}

// One for each that was asked for, each with as many numbers as its shape has.
inline void check_fuzz_targets(const FoundSample& sample, const FieldChoice& choice) {
  if (sample.targets.size() != choice.targets.size()) std::abort();
  for (const FoundTarget& target : sample.targets) {
    size_t numbers = 1;
    for (const int64_t extent : target.shape) {
      if (extent < 0) std::abort();
      numbers *= static_cast<size_t>(extent);
    }
    if (numbers != target.size()) std::abort();
    if (!target.integers.empty() && !target.reals.empty()) std::abort();
    if (target.type == TargetType::int32) std::abort();
  }
}

}  // namespace stoker
