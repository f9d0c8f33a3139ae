#include "train/model/recipe_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>
#include <type_traits>

#include "pipeline/files/json_file.h"
#include "train/model/choices.h"

namespace stoker {
namespace {

using Json = nlohmann::json;

// The tables below describe each struct and enum completely; write_json() and read_json() use them.
template <class S, class T, bool kLater>
struct Field {
  const char* name;
  T S::*member;
  static constexpr bool later = kLater;
};
template <class S, class T>
constexpr Field<S, T, false> field(const char* name, T S::*member) {
  return {name, member};
}
// A field that came later. Its default is what was done before it, so older recipes need not have
// it, and it is written only if it has another value: the text of an old recipe stays the same.
template <class S, class T>
constexpr Field<S, T, true> later_field(const char* name, T S::*member) {
  return {name, member};
}
template <class S>
constexpr auto kFields = nullptr;
template <>
constexpr auto kFields<Size> = std::tuple(field("width", &Size::width),
                                          field("height", &Size::height));
template <>
constexpr auto kFields<OptimizerSpec> = [] {
  using S = OptimizerSpec;
  return std::tuple(
      field("learning_rate", &S::learning_rate), field("lr_ref_batch", &S::lr_ref_batch),
      field("momentum", &S::momentum), field("nesterov", &S::nesterov),
      field("weight_decay", &S::weight_decay), field("decoupled", &S::decoupled),
      field("decay_norms", &S::decay_norms), field("norm_bias_factor", &S::norm_bias_factor),
      field("train_norm_weights", &S::train_norm_weights), later_field("kind", &S::kind),
      later_field("beta1", &S::beta1), later_field("beta2", &S::beta2),
      later_field("epsilon", &S::epsilon), later_field("trust", &S::trust),
      later_field("rate_factors", &S::rate_factors), later_field("clip_norm", &S::clip_norm));
}();
template <>
constexpr auto kFields<ScheduleSpec> = [] {
  using S = ScheduleSpec;
  return std::tuple(field("kind", &S::kind), field("start", &S::start), field("peak", &S::peak),
                    field("end", &S::end), field("milestones", &S::milestones),
                    field("gamma", &S::gamma), field("warmup_epochs", &S::warmup_epochs),
                    field("warmup_start", &S::warmup_start),
                    later_field("warmup_steps", &S::warmup_steps));
}();
template <>
constexpr auto kFields<AverageSpec> = std::tuple(field("kind", &AverageSpec::kind),
                                                 field("every", &AverageSpec::every),
                                                 field("decay", &AverageSpec::decay),
                                                 field("ramp", &AverageSpec::ramp));
template <>
constexpr auto kFields<Recipe> = [] {
  using S = Recipe;
  // Checkpoints keep the old name "rows_per_shard", so that every version can read them.
  return std::tuple(field("name", &S::name), field("input", &S::input), field("epochs", &S::epochs),
                    field("batch", &S::batch), field("rows_per_shard", &S::micro_batch_size),
                    field("last_batch", &S::last_batch), field("train", &S::train),
                    field("eval", &S::eval), field("mean", &S::mean), field("stddev", &S::stddev),
                    field("optimizer", &S::optimizer), field("schedule", &S::schedule),
                    field("label_smoothing", &S::label_smoothing), field("average", &S::average),
                    field("zero_gamma", &S::zero_gamma), field("whitening", &S::whitening),
                    field("whiten_bias_epochs", &S::whiten_bias_epochs),
                    field("eval_views", &S::eval_views), field("precision", &S::precision));
}();

// An augmentation in checkpoints from before there were lists of stages.
enum class OldCrop : uint8_t { random_resized, resize_center, pad_random, whole };
enum class OldFlip : uint8_t { none, random, alternating };
enum class OldPadding : uint8_t { zero, reflect };
enum class OldFilter : uint8_t { bilinear, bicubic };
struct OldAugment {
  Size output;
  OldCrop crop{};
  double scale_min = 0, scale_max = 0, ratio_min = 0, ratio_max = 0;
  int resize_short = 0;
  OldFilter filter{};
  int pad = 0;
  OldPadding pad_mode{};
  OldFlip flip{};
  int cutout = 0;
  uint8_t cutout_value = 0;
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;
};

}  // namespace

template <>
inline constexpr auto kChoices<OldCrop> =
    std::to_array<Choice<OldCrop>>({{OldCrop::random_resized, "random_resized"},
                                    {OldCrop::resize_center, "resize_center"},
                                    {OldCrop::pad_random, "pad_random"},
                                    {OldCrop::whole, "whole"}});
template <>
inline constexpr auto kChoices<OldFlip> = std::to_array<Choice<OldFlip>>(
    {{OldFlip::none, "none"}, {OldFlip::random, "random"}, {OldFlip::alternating, "alternating"}});
template <>
inline constexpr auto kChoices<OldPadding> = std::to_array<Choice<OldPadding>>(
    {{OldPadding::zero, "zero"}, {OldPadding::reflect, "reflect"}});
template <>
inline constexpr auto kChoices<OldFilter> = std::to_array<Choice<OldFilter>>(
    {{OldFilter::bilinear, "bilinear"}, {OldFilter::bicubic, "bicubic"}});

namespace {

template <>
constexpr auto kFields<OldAugment> = [] {
  using S = OldAugment;
  return std::tuple(field("output", &S::output), field("crop", &S::crop),
                    field("scale_min", &S::scale_min), field("scale_max", &S::scale_max),
                    field("ratio_min", &S::ratio_min), field("ratio_max", &S::ratio_max),
                    field("resize_short", &S::resize_short), field("filter", &S::filter),
                    field("pad", &S::pad), field("pad_mode", &S::pad_mode), field("flip", &S::flip),
                    field("cutout", &S::cutout), field("cutout_value", &S::cutout_value),
                    field("brightness", &S::brightness), field("contrast", &S::contrast),
                    field("saturation", &S::saturation), field("hue", &S::hue));
}();

template <class T>
concept Struct = !std::is_null_pointer_v<decltype(kFields<T>)>;
constexpr const char* kNoPrecision = "auto";

// The stage that loads a user's own operation from a shared library.
constexpr const char* kOperation = "operation";

StageList without_operations(const StageList& list) {
  StageList kept;
  for (const Stage& stage : list.stages()) {
    if (stage.describe().find(kOperation) == std::string::npos) kept.add(stage);
  }
  return kept;
}

// Operations of the user's own are code. Whoever reads a checkpoint need not have it, and must not
// run what a checkpoint names.
std::string written_stages(AugmentSpec augment) {
  augment.stages = without_operations(augment.stages);
  for (AugmentView& view : augment.more_views) view.stages = without_operations(view.stages);
  return augment.stages_text();
}

template <class S, class Visit>
void for_each_field(const Visit& visit) {
  std::apply([&](const auto&... each) { (visit(each), ...); }, kFields<S>);
}

// Leaves later fields out that have their default, unless the whole recipe is wanted.
template <class T>
Json write_json(const T& value, bool wanted_whole) {
  Json json;
  if constexpr (Struct<T>) {
    for_each_field<T>([&](const auto& f) {
      if constexpr (std::remove_cvref_t<decltype(f)>::later) {
        if (!wanted_whole && value.*f.member == T{}.*f.member) return;
      }
      json[f.name] = write_json(value.*f.member, wanted_whole);
    });
  } else if constexpr (std::is_enum_v<T>) {
    json = choice_name(value);
  } else if constexpr (std::is_same_v<T, std::optional<Precision>>) {
    json = value ? write_json(*value, wanted_whole) : Json(kNoPrecision);
  } else if constexpr (std::is_same_v<T, AugmentSpec>) {
    json = written_stages(value);
  } else {
    json = value;
  }
  return json;
}

template <class T>
void read_json(const Json& json, const std::string& name, T& value);

template <class S>
void from_object(const Json& json, const std::string& name, S& value) {
  if (!json.is_object()) throw std::runtime_error(name + " is not an object but " + json.dump());
  std::vector<std::string> known;
  for_each_field<S>([&](const auto& f) {
    const std::string full_name = name + "." + f.name;
    const auto found = json.find(f.name);
    known.push_back(f.name);
    if (found == json.end() && f.later) return;
    if (found == json.end()) throw std::runtime_error(full_name + " is missing");
    read_json(*found, full_name, value.*f.member);
  });
  for (const auto& [key, unused] : json.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw std::runtime_error(name + "." + key + " is not known");
    }
  }
}

template <class E>
E choice_from(const Json& json, const std::string& name, const std::string& also = "") {
  std::string names;
  for (const auto& choice : kChoices<E>) {
    if (json == choice.name) return choice.value;
    names += (names.empty() ? "" : ", ") + std::string(choice.name);
  }
  throw std::runtime_error(
      fmt::format("{} is {}, which is not one of {}{}", name, json.dump(), names, also));
}

// Returns the stages that do what the old fields said, in the order in which it was done.
std::string stages_of(const OldAugment& old) {
  const std::string filter =
      old.filter == OldFilter::bicubic ? "filter='bicubic'" : "filter='bilinear'";
  std::string text;
  switch (old.crop) {
    case OldCrop::random_resized:
      text = fmt::format("random_resized_crop(scale=({}, {}), ratio=({}, {}), {})", old.scale_min,
                         old.scale_max, old.ratio_min, old.ratio_max, filter);
      break;
    case OldCrop::resize_center:
      text = fmt::format("resize_center_crop(short={}, {})", old.resize_short, filter);
      break;
    case OldCrop::pad_random:
      text = fmt::format("resize({}) | random_crop(padding={}, mode='{}')", filter, old.pad,
                         old.pad_mode == OldPadding::zero ? "constant" : "reflect");
      break;
    case OldCrop::whole:
      text = fmt::format("resize({})", filter);
      break;
  }
  if (old.flip == OldFlip::random) text += " | flip";
  if (old.flip == OldFlip::alternating) text += " | flip(alternating=True)";
  if (std::max({old.brightness, old.contrast, old.saturation, old.hue}) > 0) {
    text += fmt::format(" | color_jitter({}, {}, {}, {})", old.brightness, old.contrast,
                        old.saturation, old.hue);
  }
  if (old.cutout > 0) text += fmt::format(" | cutout({}, value={})", old.cutout, old.cutout_value);
  return text;
}

// Reads the text of the stages, or an object of an older checkpoint.
void read_augment(const Json& json, const std::string& name, AugmentSpec& spec) {
  std::string text;
  if (json.is_string()) {
    text = json.get<std::string>();
  } else if (json.is_object()) {
    OldAugment old;
    from_object(json, name, old);
    spec.output = old.output;
    text = stages_of(old);
  } else {
    throw std::runtime_error(name + " is no text of stages but " + json.dump());
  }
  if (text.find(kOperation) != std::string::npos) {
    throw std::runtime_error(name + ": operations are not loaded from a recipe: " + text);
  }
  try {
    if (text.empty()) {
      spec.stages = StageList();
    } else {
      spec.set_stages(text);
    }
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(name + ": " + error.what());
  }
}

template <class T>
void read_json(const Json& json, const std::string& name, T& value) {
  if constexpr (Struct<T>) {
    from_object(json, name, value);
  } else if constexpr (std::is_enum_v<T>) {
    value = choice_from<T>(json, name);
  } else if constexpr (std::is_same_v<T, std::optional<Precision>>) {
    value.reset();
    if (json == kNoPrecision) return;
    value = choice_from<Precision>(json, name, std::string(", ") + kNoPrecision);
  } else if constexpr (std::is_same_v<T, AugmentSpec>) {
    read_augment(json, name, value);
  } else {
    try {
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        value = whole_number<T>(json);
      } else {
        json.get_to(value);
      }
    } catch (const std::exception& error) {
      throw std::runtime_error(name + ": " + error.what());
    }
  }
}

// Recipes of older checkpoints have the mix outside of the augmentation, and one draw for each
// step. Takes it out of `json`.
MixSpec take_old_mix(Json& json) {
  MixSpec mix;
  const auto old = json.find("mix"), train = json.find("train");
  const bool is_old = train != json.end() && train->is_object();
  if (!is_old || old == json.end() || !old->is_object()) return mix;
  read_json(old->value("mixup_alpha", Json()), "recipe.mix.mixup_alpha", mix.mixup_alpha);
  read_json(old->value("cutmix_alpha", Json()), "recipe.mix.cutmix_alpha", mix.cutmix_alpha);
  read_json(old->value("probability", Json()), "recipe.mix.probability", mix.probability);
  mix.per_batch = mix.on();
  json.erase("mix");
  return mix;
}

}  // namespace

Json recipe_to_json(const Recipe& recipe) { return write_json(recipe, false); }

Recipe recipe_from_json(const Json& json) {
  Recipe recipe;
  Json rest = json;
  const MixSpec old_mix = rest.is_object() ? take_old_mix(rest) : MixSpec{};
  read_json(rest, "recipe", recipe);
  if (old_mix.on()) recipe.train.mix = old_mix;
  for (AugmentSpec* spec : {&recipe.train, &recipe.eval}) {
    if (spec->output == Size{}) spec->output = recipe.input;
  }
  return recipe;
}

std::vector<std::string> recipe_differences(const Recipe& before, const Recipe& after) {
  const Json old_values = write_json(before, true).flatten();
  const Json new_values = write_json(after, true).flatten();
  std::vector<std::string> differences;
  for (const auto& [path, value] : new_values.items()) {
    std::string name = path.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    const auto found = old_values.find(path);
    const Json old_value = found == old_values.end() ? Json() : *found;
    if (old_value != value)
      differences.push_back(name + ": " + old_value.dump() + " -> " + value.dump());
  }
  if (old_values.size() != new_values.size()) {
    differences.push_back("schedule.milestones: other numbers");
  }
  return differences;
}

std::string recipe_difference(const Recipe& before, const Recipe& after,
                              const std::vector<std::string>& except) {
  for (const std::string& difference : recipe_differences(before, after)) {
    const std::string name = difference.substr(0, difference.find(':'));
    if (std::find(except.begin(), except.end(), name) == except.end()) return difference;
  }
  return "";
}

}  // namespace stoker
