// The options that say how data in a store are reached: --store-... Values that add_store_options()
// binds to a parser.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "pipeline/store/store_options.h"

namespace stoker {

struct StoreOptionGroup {
  StoreOptions options;
  std::string style = "auto";
  int64_t mebibytes = StoreOptions{}.read_ahead_bytes >> 20;
  CLI::App* app = nullptr;  // that has the options

  StoreOptions store() const;
  // Throws std::invalid_argument with an option that was given though `path` is not in a store.
  void check_used(const std::string& path) const;
};

// Returns a path as it is written down: absolute, and an address without its query, which may be a
// signature.
std::string written_path(const std::string& path);

void add_store_options(CLI::App& app, StoreOptionGroup& group);

}  // namespace stoker
