#include "train/labels.h"

#include <fmt/format.h>

#include <stdexcept>

namespace stoker {

Labels labels_of(const Source& source) {
  const auto targets = source.targets();
  if (targets.empty()) return {"", source.class_names()};
  const TargetColumn& target = targets.front();
  const bool vector = target.type == TargetType::float32 && target.shape.size() == 1;
  if (targets.size() > 1 || !vector) {
    throw std::invalid_argument(fmt::format(
        "{}: the samples have {}, {}; models learn a label, or one target of a number from 0 to 1 "
        "for each class, as tags:float32",
        source.root(), targets.size() == 1 ? "a target" : fmt::format("{} targets", targets.size()),
        target.describe()));
  }
  Labels labels{target.name, {}};
  for (int64_t i = 0; i < target.numbers(); ++i) {
    labels.class_names.push_back(fmt::format("{}[{}]", target.name, i));
  }
  return labels;
}

}  // namespace stoker
