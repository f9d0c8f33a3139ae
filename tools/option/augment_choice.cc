#include "tools/option/augment_choice.h"

#include "train/model/models.h"
#include "train/model/recipe.h"

namespace stoker {
namespace {

constexpr int kDefaultSize = 224;

}  // namespace

AugmentSpec AugmentChoice::spec(const Source& source) const {
  const bool eval = view == "eval";
  AugmentSpec chosen;
  if (model.empty()) {
    const bool raw = source.encoding() != SampleEncoding::image_file;
    chosen.output = raw ? source.raw_size() : Size{kDefaultSize, kDefaultSize};
    chosen.crop = eval ? CropMode::resize_center : CropMode::random_resized;
    chosen.flip = eval ? FlipMode::none : FlipMode::random;
  } else {
    Recipe recipe = default_recipe(model);
    if (size) recipe.set_input({*size, *size});
    chosen = eval ? recipe.eval : recipe.train;
  }
  if (size) chosen.output = {*size, *size};
  changes.apply(chosen);
  chosen.validate();
  return chosen;
}

void add_augment_choice(CLI::App& app, AugmentChoice& choice) {
  app.add_option("--size", choice.size,
                 "Width and height of the samples in pixels (default: the model's, the raw "
                 "images', or 224)")
      ->check(CLI::Range(1, 1 << 14));
  app.add_option(
         "--model", choice.model,
         "Model whose recipe says how to augment (default: random_resized and random flips)")
      ->check(CLI::IsMember(list_models()));
  app.add_option("--view", choice.view,
                 "Augmentation to show: that of training or that of evaluation")
      ->check(CLI::IsMember({"train", "eval"}));
  add_augment_options(app, choice.changes);
}

const std::map<std::string, LastBatch>& last_batch_names() {
  static const std::map<std::string, LastBatch> names = {
      {"pad", LastBatch::pad}, {"drop", LastBatch::drop}, {"wrap", LastBatch::wrap}};
  return names;
}

}  // namespace stoker
