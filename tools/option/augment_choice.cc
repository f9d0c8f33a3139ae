#include "tools/option/augment_choice.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "train/model/models.h"
#include "train/model/recipe.h"

namespace stoker {
namespace {

constexpr Size kDefaultSize{224, 224};

}  // namespace

AugmentSpec AugmentChoice::spec(std::optional<Size> raw) const {
  const bool eval = view == "eval";
  AugmentSpec chosen;
  if (model.empty()) {
    chosen.stages = StageList(eval ? "resize_center_crop" : "random_resized_crop | flip");
    chosen.output = raw.value_or(kDefaultSize);
  } else {
    const Recipe recipe = default_recipe(model);
    chosen = eval ? recipe.eval : recipe.train;
  }
  if (augment) {
    chosen.set_stages(*augment);
    chosen.output = own_size(chosen.stages).value_or(chosen.output);
  }
  if (size) chosen.output = {*size, *size};
  chosen.validate_for(raw);
  return chosen;
}

AugmentSpec AugmentChoice::spec(const Source& source) const {
  const bool raw = source.encoding() != SampleEncoding::image_file;
  return spec(raw ? std::optional(source.raw_size()) : std::nullopt);
}

void add_augment_choice(CLI::App& app, AugmentChoice& choice) {
  app.add_option("--size", choice.size,
                 "Width and height of the samples in pixels (default: that of --augment, the "
                 "model's, the raw images', or 224)")
      ->check(CLI::Range(1, 1 << 14));
  app.add_option(
         "--model", choice.model,
         "Model whose recipe says how to augment (default: none, random_resized_crop | flip)")
      ->check(CLI::IsMember(list_models()));
  CLI::Option* const view =
      app.add_option("--view", choice.view,
                     "Augmentation to show: that of training or that of evaluation")
          ->check(CLI::IsMember({"train", "eval"}));
  add_augment_option(app, choice.augment, "that of --view")->excludes(view);
}

CLI::Option* add_augment_option(CLI::App& app, std::optional<std::string>& stages,
                                const std::string& otherwise) {
  return app.add_option(
      "--augment", stages,
      "Stages of the augmentation, such as \"random_resized_crop(scale=(0.35, 1)) | "
      "random_augment(2, 9) | flip\"; stoker augment lists them (default: " +
          otherwise + ")");
}

void add_explain_option(CLI::App& app, bool& explain) {
  app.add_flag("--explain-augment", explain,
               "Only say of each stage of the augmentation whether the decoder does it, and which "
               "ones are joined");
}

void print_explanation(const AugmentSpec& spec) {
  fmt::print("samples of {} x {} pixels (height, width)\n", spec.output.height, spec.output.width);
  for (const std::string& line : explain_augmentation(spec)) fmt::print("{}\n", line);
}

std::optional<Size> own_size(const StageList& stages) { return stages.size({}, {}); }

}  // namespace stoker
