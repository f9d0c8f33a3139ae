#include "tools/option/renamed_options.h"

#include <utility>

namespace stoker {
namespace {

constexpr std::pair<const char*, const char*> kRenamed[] = {
    {"grad-wire", "comm-dtype"},
    {"rows", "batch"},
    {"rows-per-shard", "micro-batch"},
};

}  // namespace

std::string new_option_name(const std::string& old_name) {
  for (const auto& [before, now] : kRenamed) {
    if (old_name == before) return now;
  }
  return "";
}

}  // namespace stoker
