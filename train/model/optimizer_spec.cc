#include "train/model/optimizer_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipeline/files/invalid_field.h"
#include "train/model/choices.h"

namespace stoker {
namespace {

void require_optimizer(bool ok, const char* field, double value, const char* rule) {
  if (ok && std::isfinite(value)) return;
  throw InvalidField("recipe", field, fmt::format(" is {:.10g}, but must be {}", value, rule));
}

bool is_share(double value) { return value >= 0 && value < 1; }

// Settings that only this kind of optimizer has.
std::string own_numbers(const OptimizerSpec& spec) {
  switch (spec.kind) {
    case OptimizerKind::sgd:
      return fmt::format("momentum {:g}{}", spec.momentum, spec.nesterov ? " (Nesterov)" : "");
    case OptimizerKind::lars:
      return fmt::format("LARS with trust {:g}, momentum {:g}{}", spec.trust, spec.momentum,
                         spec.nesterov ? " (Nesterov)" : "");
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return fmt::format("{} with betas {:g} and {:g}, epsilon {:g}",
                         spec.kind == OptimizerKind::adam ? "Adam" : "AdamW", spec.beta1,
                         spec.beta2, spec.epsilon);
  }
  return "";
}

}  // namespace

const char* to_string(OptimizerKind kind) { return choice_name(kind); }

double OptimizerSpec::effective_learning_rate(int batch) const {
  return lr_ref_batch > 0 ? learning_rate * batch / lr_ref_batch : learning_rate;
}

void OptimizerSpec::validate() const {
  require_optimizer(learning_rate >= 0, "learning_rate", learning_rate, ">= 0");
  require_optimizer(lr_ref_batch >= 0, "lr_ref_batch", lr_ref_batch, ">= 0");
  require_optimizer(is_share(momentum), "momentum", momentum, "in [0, 1)");
  require_optimizer(!nesterov || momentum > 0, "momentum", momentum, "> 0 with nesterov");
  require_optimizer(weight_decay >= 0, "weight_decay", weight_decay, ">= 0");
  for (const auto& [key, factor] : rate_factors) {
    require_optimizer(factor >= 0, "rate_factors", factor, ">= 0");
  }
  require_optimizer(norm_bias_factor > 0, "norm_bias_factor", norm_bias_factor, "> 0");
  require_optimizer(is_share(beta1), "beta1", beta1, "in [0, 1)");
  require_optimizer(is_share(beta2), "beta2", beta2, "in [0, 1)");
  require_optimizer(epsilon > 0, "epsilon", epsilon, "> 0");
  require_optimizer(trust > 0, "trust", trust, "> 0");
  require_optimizer(clip_norm >= 0, "clip_norm", clip_norm, ">= 0");
  if (decoupled && kind != OptimizerKind::sgd) {
    throw InvalidField(
        "recipe", "decoupled",
        fmt::format(" is on, but only sgd has the choice; the optimizer is {}", to_string(kind)));
  }
}

std::string OptimizerSpec::describe(int batch, const std::string& schedule) const {
  const bool decoupled_decay = decoupled || kind == OptimizerKind::adamw;
  const bool all_decay = decay_norms && kind != OptimizerKind::lars;
  const std::string scaling =
      lr_ref_batch > 0 ? fmt::format(" ({:g} x {} / {})", learning_rate, batch, lr_ref_batch) : "";
  std::string text = fmt::format("learning rate {:g}{}, {}; {}, {} weight decay {:g}{}",
                                 effective_learning_rate(batch), scaling, schedule,
                                 own_numbers(*this), decoupled_decay ? "decoupled" : "coupled",
                                 weight_decay, all_decay ? "" : ", none on batch norm and biases");
  for (const auto& [key, factor] : rate_factors) {
    text += factor == 0 ? fmt::format("; {} frozen", key) : fmt::format("; {} x {:g}", key, factor);
  }
  if (clip_norm > 0) text += fmt::format("; gradients clipped to a norm of {:g}", clip_norm);
  return text;
}

double OptimizerSpec::rate_factor(const std::string& parameter) const {
  for (size_t end = parameter.size(); end != std::string::npos && end > 0;
       end = parameter.rfind('.', end - 1)) {
    const auto found = rate_factors.find(parameter.substr(0, end));
    if (found != rate_factors.end()) return found->second;
  }
  return 1;
}

void require_rate_factors(const OptimizerSpec& spec, const std::vector<TensorInfo>& parameters) {
  for (const auto& entry : spec.rate_factors) {
    const std::string& key = entry.first;
    const bool matches = std::ranges::any_of(parameters, [&](const TensorInfo& info) {
      return info.name == key || info.name.starts_with(key + ".");
    });
    if (!matches) {
      throw InvalidField("recipe", "rate_factors",
                         fmt::format(": no parameter is named {0} or {0}.*; the first one is {1}",
                                     key, parameters.front().name));
    }
  }
  const bool frozen = std::ranges::all_of(
      parameters, [&](const TensorInfo& info) { return spec.rate_factor(info.name) == 0; });
  if (frozen) throw InvalidField("recipe", "rate_factors", ": they freeze all parameters");
}

OptimizerSpec with_optimizer(const OptimizerSpec& spec, OptimizerKind kind) {
  OptimizerSpec changed = spec;
  if (kind == spec.kind) return changed;
  changed.kind = kind;
  changed.nesterov = changed.decoupled = false;
  changed.norm_bias_factor = 1;
  if (kind == OptimizerKind::lars) changed.decay_norms = false;
  if (!has_second_moments(kind)) return changed;
  changed.learning_rate = 1e-3;
  changed.lr_ref_batch = 0;
  changed.weight_decay = kind == OptimizerKind::adamw ? 0.01 : 0;
  return changed;
}

}  // namespace stoker
