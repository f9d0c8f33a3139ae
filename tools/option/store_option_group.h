// The options that say how data in a store are reached (--store-...), and what of the data is kept
// (--cache). Values that add_store_options() binds to a parser.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/cache/decoded_cache.h"
#include "pipeline/store/store_options.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stoker {

struct StoreOptionGroup {
  StoreOptions options;
  std::string style = "auto";
  int64_t mebibytes = StoreOptions{}.read_ahead_bytes >> 20;
  std::string cache;        // a folder for a store's samples, "decoded" or "decoded:FOLDER"
  std::string cache_size;   // "500G"; "": not given
  bool feeds = false;       // the command feeds rows, and may keep decoded pictures
  CLI::App* app = nullptr;  // that has the options

  // Throws std::invalid_argument with the option if a cache lacks its place or its size, or if
  // decoded pictures are to be kept by a command that feeds no rows.
  StoreOptions store() const;
  // Returns where decoded pictures are kept, and how many bytes of them; nullopt: nowhere. Throws
  // as store().
  std::optional<DecodedCacheOptions> decoded() const;
  // The same for the data at `path`: the defaults for data that are in no store.
  StoreOptions store_for(const std::string& path) const;
  // Throws std::invalid_argument with an option that was given though none of `paths`, which are
  // not empty, is in a store.
  void check_used(const std::vector<std::string>& paths) const;

 private:
  void check_cache() const;
};

// Returns --cache as it is written down.
std::string written_cache(const std::string& cache);
// Returns a path as it is written down: absolute, and an address without its query, which may be a
// signature.
std::string written_path(const std::string& path);

// Returns the number of bytes that "1500", "200M" or "1.5T" stand for: K, M, G and T are powers of
// 1000. Throws std::invalid_argument with the text.
int64_t parse_size(const std::string& text);

void add_store_options(CLI::App& app, StoreOptionGroup& group);

}  // namespace stoker
