#include "train/recipe_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace stoker {
namespace {

using Json = nlohmann::json;

template <class E>
using EnumNames = std::vector<std::pair<E, const char*>>;

template <class E>
const EnumNames<E>& names_of();
template <>
const EnumNames<Precision>& names_of() {
  static const EnumNames<Precision> names = {{Precision::fp32, "fp32"}, {Precision::bf16, "bf16"}};
  return names;
}
template <>
const EnumNames<LastBatch>& names_of() {
  static const EnumNames<LastBatch> names = {
      {LastBatch::pad, "pad"}, {LastBatch::drop, "drop"}, {LastBatch::wrap, "wrap"}};
  return names;
}
template <>
const EnumNames<CropMode>& names_of() {
  static const EnumNames<CropMode> names = {{CropMode::random_resized, "random_resized"},
                                            {CropMode::resize_center, "resize_center"},
                                            {CropMode::pad_random, "pad_random"},
                                            {CropMode::whole, "whole"}};
  return names;
}
template <>
const EnumNames<FlipMode>& names_of() {
  static const EnumNames<FlipMode> names = {{FlipMode::none, "none"},
                                            {FlipMode::random, "random"},
                                            {FlipMode::alternating, "alternating"}};
  return names;
}
template <>
const EnumNames<PadMode>& names_of() {
  static const EnumNames<PadMode> names = {{PadMode::zero, "zero"}, {PadMode::reflect, "reflect"}};
  return names;
}
template <>
const EnumNames<Filter>& names_of() {
  static const EnumNames<Filter> names = {{Filter::bilinear, "bilinear"},
                                          {Filter::bicubic, "bicubic"}};
  return names;
}
template <>
const EnumNames<ScheduleKind>& names_of() {
  static const EnumNames<ScheduleKind> names = {{ScheduleKind::constant, "constant"},
                                                {ScheduleKind::step, "step"},
                                                {ScheduleKind::cosine, "cosine"},
                                                {ScheduleKind::triangle, "triangle"}};
  return names;
}
template <>
const EnumNames<AverageKind>& names_of() {
  static const EnumNames<AverageKind> names = {{AverageKind::none, "none"},
                                               {AverageKind::ema, "ema"},
                                               {AverageKind::lookahead, "lookahead"}};
  return names;
}

template <class T>
concept Scalar = std::is_arithmetic_v<T> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, std::vector<double>> || std::is_same_v<T, std::array<float, 3>>;
template <class T>
concept Enum = std::is_enum_v<T>;

// One list of fields serves both ways. `visit` is called with each field's name and value.
template <class V>
void fields(V& visit, Size& size) {
  visit("width", size.width);
  visit("height", size.height);
}

template <class V>
void fields(V& visit, AugmentSpec& spec) {
  visit("output", spec.output);
  visit("crop", spec.crop);
  visit("scale_min", spec.scale_min);
  visit("scale_max", spec.scale_max);
  visit("ratio_min", spec.ratio_min);
  visit("ratio_max", spec.ratio_max);
  visit("resize_short", spec.resize_short);
  visit("filter", spec.filter);
  visit("pad", spec.pad);
  visit("pad_mode", spec.pad_mode);
  visit("flip", spec.flip);
  visit("cutout", spec.cutout);
  visit("cutout_value", spec.cutout_value);
  visit("brightness", spec.brightness);
  visit("contrast", spec.contrast);
  visit("saturation", spec.saturation);
  visit("hue", spec.hue);
}

template <class V>
void fields(V& visit, OptimizerSpec& spec) {
  visit("learning_rate", spec.learning_rate);
  visit("lr_ref_batch", spec.lr_ref_batch);
  visit("momentum", spec.momentum);
  visit("nesterov", spec.nesterov);
  visit("weight_decay", spec.weight_decay);
  visit("decoupled", spec.decoupled);
  visit("decay_norms", spec.decay_norms);
  visit("norm_bias_factor", spec.norm_bias_factor);
  visit("train_norm_weights", spec.train_norm_weights);
}

template <class V>
void fields(V& visit, ScheduleSpec& spec) {
  visit("kind", spec.kind);
  visit("start", spec.start);
  visit("peak", spec.peak);
  visit("end", spec.end);
  visit("milestones", spec.milestones);
  visit("gamma", spec.gamma);
  visit("warmup_epochs", spec.warmup_epochs);
  visit("warmup_start", spec.warmup_start);
}

template <class V>
void fields(V& visit, AverageSpec& spec) {
  visit("kind", spec.kind);
  visit("every", spec.every);
  visit("decay", spec.decay);
  visit("ramp", spec.ramp);
}

template <class V>
void fields(V& visit, MixSpec& spec) {
  visit("mixup_alpha", spec.mixup_alpha);
  visit("cutmix_alpha", spec.cutmix_alpha);
  visit("probability", spec.probability);
}

template <class V>
void fields(V& visit, Recipe& recipe) {
  visit("name", recipe.name);
  visit("input", recipe.input);
  visit("epochs", recipe.epochs);
  visit("batch", recipe.batch);
  visit("rows_per_shard", recipe.rows_per_shard);
  visit("last_batch", recipe.last_batch);
  visit("train", recipe.train);
  visit("eval", recipe.eval);
  visit("mean", recipe.mean);
  visit("stddev", recipe.stddev);
  visit("optimizer", recipe.optimizer);
  visit("schedule", recipe.schedule);
  visit("label_smoothing", recipe.label_smoothing);
  visit("average", recipe.average);
  visit("mix", recipe.mix);
  visit("zero_gamma", recipe.zero_gamma);
  visit("whitening", recipe.whitening);
  visit("whiten_bias_epochs", recipe.whiten_bias_epochs);
  visit("eval_views", recipe.eval_views);
  visit("precision", recipe.precision);
}

struct Writer {
  Json json = Json::object();

  template <Scalar T>
  void operator()(const char* name, T& value) {
    json[name] = value;
  }
  template <Enum E>
  void operator()(const char* name, E& value) {
    for (const auto& [each, text] : names_of<E>()) {
      if (each == value) json[name] = text;
    }
  }
  void operator()(const char* name, std::optional<Precision>& value) {
    if (value) {
      (*this)(name, *value);
    } else {
      json[name] = "auto";
    }
  }
  template <class T>
  void operator()(const char* name, T& value) {
    Writer inner;
    fields(inner, value);
    json[name] = std::move(inner.json);
  }
};

class Reader {
 public:
  Reader(const Json& json, std::string prefix) : json_(json), prefix_(std::move(prefix)) {
    if (!json.is_object()) throw std::runtime_error(prefix_ + " is not an object");
  }
  template <Scalar T>
  void operator()(const char* name, T& value) {
    try {
      at(name).get_to(value);
    } catch (const Json::exception& error) {
      throw std::runtime_error(prefix_ + name + ": " + error.what());
    }
  }
  template <Enum E>
  void operator()(const char* name, E& value) {
    const Json& text = at(name);
    for (const auto& [each, known] : names_of<E>()) {
      if (text == known) {
        value = each;
        return;
      }
    }
    throw std::runtime_error(prefix_ + name + " is " + text.dump() + ", which is not known");
  }
  void operator()(const char* name, std::optional<Precision>& value) {
    const auto found = json_.find(name);
    if (found == json_.end() || *found != "auto") {
      (*this)(name, value.emplace());
    } else {
      ++seen_;
    }
  }
  template <class T>
  void operator()(const char* name, T& value) {
    Reader inner(at(name), prefix_ + name + ".");
    fields(inner, value);
    inner.finish();
  }
  void finish() const {
    if (seen_ != json_.size()) throw std::runtime_error(prefix_ + " has fields that are not known");
  }

 private:
  const Json& at(const char* name) {
    const auto found = json_.find(name);
    if (found == json_.end()) throw std::runtime_error(prefix_ + name + " is missing");
    ++seen_;
    return *found;
  }

  const Json& json_;
  const std::string prefix_;
  size_t seen_ = 0;
};

}  // namespace

Json recipe_to_json(const Recipe& recipe) {
  Recipe copy = recipe;  // `fields` serves both ways, so it wants to be able to write
  Writer writer;
  fields(writer, copy);
  return std::move(writer.json);
}

Recipe recipe_from_json(const Json& json) {
  Recipe recipe;
  Reader reader(json, "recipe.");
  fields(reader, recipe);
  reader.finish();
  return recipe;
}

std::string recipe_difference(const Recipe& before, const Recipe& after,
                              const std::vector<std::string>& except) {
  const Json old_values = recipe_to_json(before).flatten();
  const Json new_values = recipe_to_json(after).flatten();
  for (const auto& [path, value] : new_values.items()) {
    std::string name = path.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    if (std::find(except.begin(), except.end(), name) != except.end()) continue;
    const auto found = old_values.find(path);
    const Json old_value = found == old_values.end() ? Json() : *found;
    if (old_value != value) return name + ": " + old_value.dump() + " -> " + value.dump();
  }
  return old_values.size() == new_values.size() ? "" : "schedule.milestones: other numbers";
}

}  // namespace stoker
