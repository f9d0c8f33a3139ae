// The names of a recipe's choices: in JSON, in options and in texts. Values; any thread.
#pragma once

#include <array>
#include <map>
#include <string>

#include "train/model/recipe.h"

namespace stoker {

template <class E>
struct Choice {
  E value;
  const char* name;
};
template <class E>
inline constexpr auto kChoices = nullptr;

template <>
inline constexpr auto kChoices<Precision> =
    std::to_array<Choice<Precision>>({{Precision::fp32, "fp32"}, {Precision::bf16, "bf16"}});
template <>
inline constexpr auto kChoices<LastBatch> = std::to_array<Choice<LastBatch>>(
    {{LastBatch::pad, "pad"}, {LastBatch::drop, "drop"}, {LastBatch::wrap, "wrap"}});
template <>
inline constexpr auto kChoices<OptimizerKind> =
    std::to_array<Choice<OptimizerKind>>({{OptimizerKind::sgd, "sgd"},
                                          {OptimizerKind::lars, "lars"},
                                          {OptimizerKind::adam, "adam"},
                                          {OptimizerKind::adamw, "adamw"}});
template <>
inline constexpr auto kChoices<ScheduleKind> =
    std::to_array<Choice<ScheduleKind>>({{ScheduleKind::constant, "constant"},
                                         {ScheduleKind::step, "step"},
                                         {ScheduleKind::cosine, "cosine"},
                                         {ScheduleKind::triangle, "triangle"}});
template <>
inline constexpr auto kChoices<AverageKind> =
    std::to_array<Choice<AverageKind>>({{AverageKind::none, "none"},
                                        {AverageKind::ema, "ema"},
                                        {AverageKind::lookahead, "lookahead"}});

template <class E>
const char* choice_name(E value) {
  for (const Choice<E>& choice : kChoices<E>) {
    if (choice.value == value) return choice.name;
  }
  return "?";
}

template <class E>
std::map<std::string, E> choices_by_name() {
  std::map<std::string, E> choices;
  for (const Choice<E>& choice : kChoices<E>) choices[choice.name] = choice.value;
  return choices;
}

}  // namespace stoker
