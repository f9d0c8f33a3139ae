// The augmentation that `dump` and `peek` show: a model's recipe, or a training transform of
// ImageNet, with changes. A value that add_augment_choice() binds to a parser.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <string>

#include "pipeline/augment.h"
#include "pipeline/sampler.h"
#include "pipeline/source/source.h"
#include "tools/option/feed_options.h"

namespace stoker {

struct AugmentChoice {
  std::string model;           // "" = none: random_resized and random flips
  std::string view = "train";  // or "eval"
  std::optional<int> size;     // pixels; none: the model's, or the raw images', or 224
  AugmentOptions changes;

  // Throws std::invalid_argument.
  AugmentSpec spec(const Source& source) const;
};

void add_augment_choice(CLI::App& app, AugmentChoice& choice);

const std::map<std::string, LastBatch>& last_batch_names();

}  // namespace stoker
