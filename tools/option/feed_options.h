// The options that subcommands share: the data and how they are decoded. Values that add_*() binds
// to a parser; the functions below turn them into the library's types.
// Throws std::invalid_argument with the option and the value.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/loader_types.h"
#include "pipeline/source.h"
#include "tools/option/store_option_group.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stoker {

struct DataOptions {
  std::string data;
  std::string image_from, label_from;     // as in SourceOptions
  std::vector<std::string> targets_from;  // as there
  std::string objects;                    // as there
  std::string objects_from, label_image_from;
  std::vector<std::string> pictures_from;  // as there
  std::string split = "train";
  int64_t max_pixels = DecodeOptions{}.max_pixels;
  std::string exif = "ignore";
  std::string pixels = "exact";
  int workers = -1;
  int64_t memory = 0;
  int io_threads = FeedOptions{}.io_threads;
  double max_bad = FeedOptions{}.max_bad;
  std::string on_bad = "substitute";
  std::string seek_index = FeedOptions{}.seek_index;
  std::string texts = "first", too_long = "fail";
  int max_target_bytes = VaryingOptions{}.max_bytes;
  StoreOptionGroup store;

  DecodeOptions decode() const;
  OnBadSample on_bad_sample() const;
  VaryingOptions varying() const;
  FeedOptions feed() const;  // with a DecodedCache of its own, if --cache asks for one
};

void add_data_option(CLI::App& app, DataOptions& options);  // --data, and those below
// --image-from --label-from --store-...
void add_field_options(CLI::App& app, DataOptions& options);
// --target-from --texts --max-target-bytes --too-long
void add_target_options(CLI::App& app, DataOptions& options);
// --objects --objects-from --label-image-from --picture-from
void add_objects_options(CLI::App& app, DataOptions& options);
// --target-from for the one that a model learns.
void add_learned_target_option(CLI::App& app, DataOptions& options);
void add_split_option(CLI::App& app, DataOptions& options);
void add_decode_options(CLI::App& app, DataOptions& options);  // --exif --pixels --max-pixels
void add_feed_options(CLI::App& app, DataOptions& options);  // --memory --workers --io-threads ...
// After parsing: throws if an option of add_feed_options() would be ignored, or one of a store,
// because none of the data at `paths` are in one.
void check_feed_options(const CLI::App& app, const DataOptions& options,
                        const std::vector<std::string>& paths);
// Throws if --seek-index names a file that does not exist.
void check_seek_index(const DataOptions& options);

// Opens the data and prints Source::notes() on standard error, and a progress bar there while a new
// index of shards is made. A path without data is the caller's mistake: throws
// std::invalid_argument that names --data with the path. Ctrl-C ends the process meanwhile, and
// leaves no unfinished index.
std::unique_ptr<Source> open_data(const DataOptions& options, Split split);
// The same for the data at `path`, which were named by `option`.
std::unique_ptr<Source> open_path(const DataOptions& options, const std::string& path, Split split,
                                  const std::string& option);
// Opens the data at `path`, which were named for evaluation by `option`: their test part, or all of
// them if there are no parts. `options` says which fields to take.
std::unique_ptr<Source> open_eval_data(const DataOptions& options, const std::string& path,
                                       const std::string& option);
// Opens the test part of the data at `path`. Returns null, with the reason in `problem`, if there
// is none.
std::unique_ptr<Source> open_test_part(const DataOptions& options, const std::string& path,
                                       std::string& problem);
Split parse_split(const std::string& name);

}  // namespace stoker
