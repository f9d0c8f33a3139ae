// The augmentation that `dump`, `peek` and the measurements show: that of --augment, a model's, or
// a training transform of ImageNet. A value that add_augment_choice() binds to a parser.
#pragma once

#include <optional>
#include <string>

#include "pipeline/augment.h"
#include "pipeline/source.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace stoker {

struct AugmentChoice {
  std::string model;                   // "" = none: random_resized_crop | flip
  std::string view = "train";          // or "eval"
  std::optional<std::string> augment;  // stages instead of the view's
  std::optional<int> size;             // pixels

  // Returns what is chosen for samples of any size, or of raw images of this one. Rows have --size;
  // or else the size that --augment ends with, the model's, the raw images', or 224. Throws
  // std::invalid_argument.
  AugmentSpec spec(std::optional<Size> raw) const;
  AugmentSpec spec(const Source& source) const;
};

// Adds --augment, --size, --model and --view.
void add_augment_choice(CLI::App& app, AugmentChoice& choice);
// Adds --augment alone. `group`: as CLI::Option::group.
CLI::Option* add_augment_option(CLI::App& app, std::optional<std::string>& stages,
                                const std::string& otherwise);
// Adds --explain-augment, with which a command calls print_explanation() and ends.
void add_explain_option(CLI::App& app, bool& explain);
// Prints a line for each stage: whether the decoder does it, or it is joined with others.
void print_explanation(const AugmentSpec& spec);

// Returns the size of the images with which the stages end, if they say one themselves.
std::optional<Size> own_size(const StageList& stages);

}  // namespace stoker
