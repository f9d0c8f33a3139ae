// --subset, --weights, --blend and --shuffle-blocks: which samples a command takes, how often each
// comes, and in which order.
// Throws std::invalid_argument with the option, and with what was written or file and line.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/sample_order.h"
#include "pipeline/source.h"
#include "tools/option/feed_options.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stoker {

struct SampleChoice {
  std::string subset;              // "": all samples
  std::string weights;             // "": every sample once
  std::vector<std::string> blend;  // PATH=WEIGHT, in place of --data
  std::string shuffle_blocks;      // "16" or "16x64"; "": no blocks
  bool has_order() const { return !weights.empty() || !blend.empty() || !shuffle_blocks.empty(); }
};

// Adds the three options. `app` has --data already, which is no longer required: --blend may stand
// in its place.
void add_sample_options(CLI::App& app, SampleChoice& choice);
// Adds --shuffle-blocks, for commands that feed a training.
void add_shuffle_option(CLI::App& app, SampleChoice& choice);
// Returns what --shuffle-blocks asks for; null: nothing.
SharedOrder shuffle_order(const Source& source, const SampleChoice& choice);
// After parsing: throws if the data are not named, or named twice, and for options that do not go
// together. `limit` is the command's option of that meaning, "" if it has none.
void check_sample_options(const CLI::App& app, const SampleChoice& choice,
                          const std::string& limit);

// Opened data. A value that may be moved; the references into it stay.
struct ChosenSamples {
  // The last one is the data; the others are what it is made of. Empty: there are none.
  std::vector<std::unique_ptr<Source>> sources;
  SharedOrder order;   // null: every sample once
  std::string subset;  // which samples these are, for comparisons: a count and a digest; "": all
  bool empty() const { return sources.empty(); }
  const Source& source() const { return *sources.back(); }
  const Source* source_or_null() const { return empty() ? nullptr : &source(); }
};

// Opens the data at a path that was named by an option.
using OpenNamed =
    std::function<std::unique_ptr<Source>(const std::string& path, const std::string& option)>;

// Opens --data or the parts of --blend with `open`.
ChosenSamples choose_samples(const DataOptions& data, const SampleChoice& choice,
                             const OpenNamed& open);
// The same with one part of the data.
ChosenSamples choose_samples(const DataOptions& data, const SampleChoice& choice, Split split);

// Opens what is evaluated after training on these data: the test part of --data, or the test parts
// of --blend one after the other. Parts that are not there are named in `notes`; without any, the
// result is empty.
ChosenSamples open_test_samples(const DataOptions& data, const SampleChoice& choice,
                                std::vector<std::string>& notes);

// Returns what --data names, or --blend.
std::vector<std::string> paths_of(const DataOptions& data, const SampleChoice& choice);

// Takes a part of opened data, which have no order. `option` is for messages.
void take_subset(ChosenSamples& samples, const std::string& spec, const std::string& option);

// Returns the options that name the data, with absolute paths, so that the data can be found again
// from another folder.
std::vector<std::pair<std::string, std::string>> written_options(const DataOptions& data,
                                                                 const SampleChoice& choice);

}  // namespace stoker
