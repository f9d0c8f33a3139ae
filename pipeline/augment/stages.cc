#include "pipeline/augment/stages.h"

#include <algorithm>
#include <array>

namespace stoker {

namespace {

constexpr auto pointers_to(const auto&... types) { return std::array{&types...}; }

}  // namespace

std::span<const StageType* const> all_stages() {
  static constexpr auto kAll = pointers_to(STOKER_STAGES);
  return kAll;
}

const StageType* find_stage(std::string_view name) {
  const auto all = all_stages();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const StageType* type) { return type->name == name; });
  return found == all.end() ? nullptr : *found;
}

}  // namespace stoker
