#include "tools/option/sample_choice.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "pipeline/files/digest.h"
#include "pipeline/order/id_list.h"
#include "pipeline/source/concat_source.h"
#include "pipeline/source/subset_source.h"
#include "pipeline/store/object_store.h"
#include "tools/option/parser.h"
#include "tools/option/sample_lists.h"

namespace stoker {
namespace {

const std::string kBalanced = "balanced";

// Calls `work` and puts the option before the message of what it refuses.
template <typename Work>
auto for_option(const std::string& option, const Work& work) {
  try {
    return work();
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(option + ": " + error.what());
  }
}

SharedOrder balanced_order(const Source& source) {
  std::vector<int32_t> labels;
  for (SampleId id = 0; id < source.size(); ++id) labels.push_back(source.label(id));
  return class_balanced_order(labels, source.size());
}

SharedOrder order_of(const Source& source, const std::string& weights) {
  if (weights == kBalanced) return balanced_order(source);
  return weighted_order(weights_from_file(source, weights), {.length = source.size()});
}

// Puts the concatenation of all sources behind them. `paths` are those that the user named.
void concatenate(const std::vector<std::string>& paths, ChosenSamples& samples) {
  std::vector<const Source*> parts;
  for (const auto& source : samples.sources) {
    parts.push_back(source.get());
    try {
      ConcatSource({parts.front(), parts.back()});
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("--blend: {} does not go with {}: {}",
                                              shown_path(paths[parts.size() - 1]),
                                              shown_path(paths[0]), error.what()));
    }
  }
  samples.sources.push_back(std::make_unique<ConcatSource>(parts));
}

std::vector<BlendPart> blend_parts(const std::vector<std::string>& blend) {
  return for_option("--blend", [&] {
    std::vector<BlendPart> parts;
    for (const std::string& text : blend) parts.push_back(parse_blend_part(text));
    return parts;
  });
}

ChosenSamples blended(const std::vector<BlendPart>& parts, const OpenNamed& open) {
  ChosenSamples samples;
  std::vector<std::string> paths;
  BlendOptions options{.schedule = {BlendPiece{}}};
  for (const BlendPart& part : parts) {
    samples.sources.push_back(open(part.path, "--blend"));
    paths.push_back(part.path);
    options.sizes.push_back(samples.sources.back()->size());
    options.schedule[0].weights.push_back(part.weight);
  }
  concatenate(paths, samples);
  options.length = samples.source().size();
  samples.order = for_option("--blend", [&] { return blend_order(options); });
  return samples;
}

bool is_file(const std::string& subset) {
  return !subset.starts_with("part=") && !subset.starts_with("classes=");
}

BlockShuffledOptions parse_blocks(const std::string& text, int64_t samples) {
  BlockShuffledOptions options{.samples = samples};
  const char* const end = text.data() + text.size();
  std::from_chars_result read = std::from_chars(text.data(), end, options.block);
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == 'x') {
    read = std::from_chars(read.ptr + 1, end, options.mixed);
  }
  if (read.ec != std::errc() || read.ptr != end) {
    throw std::invalid_argument("'" + text + "' is neither a number of samples nor two, as 16x64");
  }
  return options;
}

std::string not_empty(const std::string& text) { return text.empty() ? "it is empty" : ""; }

}  // namespace

void add_sample_options(CLI::App& app, SampleChoice& choice) {
  app.get_option("--data")->required(false);
  app.add_option(
         "--subset", choice.subset,
         "Which samples of --data to take (default: all). part=A:B takes a random part, by shares "
         "of the whole: part=0:0.9 and part=0.9:1 have no sample in common, and are the same in "
         "every run; classes=cat,dog takes classes, by name or number; a FILE has one sample per "
         "line, all as numbers or all as names as stoker dump prints them")
      ->check(not_empty);
  app.add_option(
         "--weights", choice.weights,
         "How often each sample comes (default: once per epoch). balanced takes all classes "
         "equally often; a FILE has a number per line, one for each sample, or lines of CLASS "
         "WEIGHT, one for each class. With a file each sample is drawn by its weight, again and "
         "again, as many per epoch as there are samples; 0 is never drawn")
      ->check(not_empty);
  app.add_option("--blend", choice.blend,
                 "PATH=WEIGHT, several times, in place of --data: each of these data sets gets its "
                 "share of an epoch, spread evenly. The weights need not add up to 1. All must "
                 "have the same classes")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->default_str("");
}

void add_shuffle_option(CLI::App& app, SampleChoice& choice) {
  app.add_option("--shuffle-blocks", choice.shuffle_blocks,
                 "Shuffle blocks of so many samples that lie one behind the other, and the samples "
                 "of 64 blocks among each other, instead of all samples: 16, or 16x64 to say both. "
                 "A store is asked for a block at a time where --store-memory holds twice the "
                 "samples that are mixed; but what is mixed is a part of the data")
      ->check(not_empty);
}

SharedOrder shuffle_order(const Source& source, const SampleChoice& choice) {
  if (choice.shuffle_blocks.empty()) return nullptr;
  return for_option("--shuffle-blocks", [&] {
    return block_shuffled_order(parse_blocks(choice.shuffle_blocks, source.size()));
  });
}

void check_sample_options(const CLI::App& app, const SampleChoice& choice,
                          const std::string& limit) {
  if (choice.blend.empty() && !is_given(app, "--data")) {
    throw std::invalid_argument("--data is required, or --blend in its place");
  }
  if (!choice.blend.empty()) {
    refuse_if_given(app, {"--data"}, "--blend names the data");
    refuse_if_given(app, {"--subset"}, "it is of one data set, and --blend names several");
    refuse_if_given(app, {"--weights"}, "--blend says how often samples come");
  }
  if (!choice.shuffle_blocks.empty()) {
    refuse_if_given(app, {"--weights", "--blend"}, "--shuffle-blocks takes every sample once");
  }
  if (!choice.has_order() || limit.empty()) return;
  const std::string part = choice.blend.empty() ? "; --subset takes a part of them" : "";
  const std::string why = !choice.shuffle_blocks.empty() ? "--shuffle-blocks is of all samples"
                          : choice.blend.empty()
                              ? "--weights says how often each of all samples comes"
                              : "--blend says how often each of all samples comes";
  refuse_if_given(app, {limit.c_str()}, why + part);
}

std::vector<std::string> paths_of(const DataOptions& data, const SampleChoice& choice) {
  std::vector<std::string> paths;
  for (const BlendPart& part : blend_parts(choice.blend)) paths.push_back(part.path);
  if (choice.blend.empty()) paths.push_back(data.data);
  return paths;
}

void take_subset(ChosenSamples& samples, const std::string& spec, const std::string& option) {
  for_option(option, [&] {
    const Source& whole = samples.source();
    const std::vector<SampleId> ids = subset_ids(whole, spec);
    samples.sources.push_back(std::make_unique<SubsetSource>(whole, ids));
    samples.subset = fmt::format("{} of {} samples, ids {}", ids.size(), whole.size(),
                                 hex64(IdList(ids).digest()));
  });
}

ChosenSamples choose_samples(const DataOptions& data, const SampleChoice& choice,
                             const OpenNamed& open) {
  if (!choice.blend.empty()) return blended(blend_parts(choice.blend), open);
  ChosenSamples samples;
  samples.sources.push_back(open(data.data, "--data"));
  if (!choice.subset.empty()) take_subset(samples, choice.subset, "--subset");
  samples.order = shuffle_order(samples.source(), choice);
  if (!choice.weights.empty()) {
    samples.order =
        for_option("--weights", [&] { return order_of(samples.source(), choice.weights); });
  }
  return samples;
}

ChosenSamples choose_samples(const DataOptions& data, const SampleChoice& choice, Split split) {
  return choose_samples(data, choice, [&](const std::string& path, const std::string& option) {
    return open_path(data, path, split, option);
  });
}

ChosenSamples open_test_samples(const DataOptions& data, const SampleChoice& choice,
                                std::vector<std::string>& notes) {
  std::vector<std::string> found, problems;
  ChosenSamples samples;
  for (const std::string& path : paths_of(data, choice)) {
    std::string problem;
    std::unique_ptr<Source> source = open_test_part(data, path, problem);
    if (source) {
      samples.sources.push_back(std::move(source));
      found.push_back(path);
    } else {
      problems.push_back(problem);
    }
  }
  const std::string what = samples.empty() ? "nothing is evaluated: " : "not all is evaluated: ";
  for (const std::string& problem : problems) notes.push_back(what + problem);
  if (samples.sources.size() > 1) concatenate(found, samples);
  return samples;
}

std::vector<std::pair<std::string, std::string>> written_options(const DataOptions& data,
                                                                 const SampleChoice& choice) {
  std::vector<std::pair<std::string, std::string>> written;
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) written.emplace_back(option, value);
  };
  if (choice.blend.empty()) add("data", written_path(data.data));
  for (const std::string& part : choice.blend) {
    const size_t weight = part.rfind('=');  // parse_blend_part() has found one
    add("blend", written_path(part.substr(0, weight)) + part.substr(weight));
  }
  add("image_from", data.image_from);
  add("label_from", data.label_from);
  const StoreOptionGroup& store = data.store;
  add("store_endpoint", store.options.endpoint);
  add("store_region", store.options.region);
  add("store_profile", store.options.profile);
  if (store.style != StoreOptionGroup{}.style) add("store_style", store.style);
  if (store.options.anonymous) add("store_anonymous", "true");
  add("store_ca", store.options.ca_file);
  if (!store.cache.empty()) add("cache", written_cache(store.cache));
  add("cache_size", store.cache_size);
  for (const std::string& field : data.targets_from) add("target_from", field);
  const bool file = !choice.subset.empty() && is_file(choice.subset);
  if (!data.objects.empty()) add("objects", written_path(data.objects));
  add("objects_from", data.objects_from);
  add("label_image_from", data.label_image_from);
  for (const std::string& picture : data.pictures_from) add("picture_from", picture);
  add("subset", file ? written_path(choice.subset) : choice.subset);
  const bool weights_file = !choice.weights.empty() && choice.weights != kBalanced;
  add("weights", weights_file ? written_path(choice.weights) : choice.weights);
  add("shuffle_blocks", choice.shuffle_blocks);
  return written;
}

}  // namespace stoker
