#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "pipeline/augment/stage.h"
#include "pipeline/files/printable_name.h"

namespace stoker {
namespace {

using Kind = ArgumentText::Kind;

std::string shown(const ArgumentText& text) {
  switch (text.kind) {
    case Kind::number:
      return number_text(text.number);
    case Kind::tuple:
      return numbers_text(text.numbers);
    case Kind::word:
      return std::string("'").append(printable_name(text.word)).append("'");
    case Kind::list:
      return "a list of stages";
  }
  return "?";
}

const char* meaning(ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::real:
      return "a number";
    case ArgumentKind::whole:
      return "a whole number";
    case ArgumentKind::range:
      return "two numbers, (least, most)";
    case ArgumentKind::spread:
      return "a number, or two: (least, most)";
    case ArgumentKind::size:
      return "a number of pixels, or two: (height, width)";
    case ArgumentKind::sides:
      return "the short side, or both: (height, width)";
    case ArgumentKind::colour:
      return "a grey from 0 to 255, or three: (red, green, blue)";
    case ArgumentKind::reals:
      return "numbers in brackets";
    case ArgumentKind::choice:
      return "a word";
    case ArgumentKind::flag:
      return "True or False";
    case ArgumentKind::text:
      return "a text in quotes";
    case ArgumentKind::stages:
      return "a list of stages";
  }
  return "?";
}

[[noreturn]] void refuse_argument(const StageType& type, const std::string& name,
                                  const std::string& value, const std::string& rule) {
  throw std::invalid_argument(std::string("augment: ") + type.name + ": " + name + " is " + value +
                              ", must be " + rule);
}

std::string list_words(std::span<const char* const> words) {
  std::string all;
  for (const char* word : words) all.append(all.empty() ? "" : ", ").append(word);
  return all;
}

std::string names_of(const StageType& type) {
  std::string all;
  for (const Parameter& parameter : type.parameters) {
    all.append(all.empty() ? "" : ", ").append(parameter.name);
  }
  return all;
}

// How many numbers a kind of parameter takes, at least and at most.
std::array<size_t, 2> count_of(ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::real:
    case ArgumentKind::whole:
      return {1, 1};
    case ArgumentKind::range:
    case ArgumentKind::spread:
    case ArgumentKind::size:
    case ArgumentKind::sides:
      return {1, 2};
    case ArgumentKind::colour:
      return {1, 3};
    default:
      return {1, 64};
  }
}

bool takes_whole_numbers(ArgumentKind kind) {
  return kind == ArgumentKind::whole || kind == ArgumentKind::size || kind == ArgumentKind::sides ||
         kind == ArgumentKind::colour;
}

bool takes_numbers(ArgumentKind kind) { return kind <= ArgumentKind::reals; }

ArgumentText default_of(const Parameter& parameter) {
  // The grammar reads a value as the only argument of a stage.
  const std::string text = std::string("default(").append(parameter.otherwise).append(")");
  return parse_stages(text)[0].arguments.at(0);
}

}  // namespace

Arguments::Arguments(const StageType& type, const StageText& text)
    : type_(&type), settings_(type.parameters.size()) {
  size_t place = 0;
  for (const ArgumentText& argument : text.arguments) {
    size_t index = place;
    if (!argument.name.empty()) {
      const auto found = std::find_if(type.parameters.begin(), type.parameters.end(),
                                      [&](const Parameter& p) { return argument.name == p.name; });
      index = static_cast<size_t>(found - type.parameters.begin());
    } else if (place < type.parameters.size() &&
               type.parameters[place].kind != ArgumentKind::stages) {
      ++place;
    }
    if (index == type.parameters.size()) {
      throw std::invalid_argument(
          std::string("augment: ") + type.name + " has no " +
          (argument.name.empty() ? "argument " + std::to_string(index + 1) : argument.name) +
          (type.parameters.empty() ? "; it takes none" : "; it has " + names_of(type)));
    }
    const Parameter& parameter = type.parameters[index];
    Setting& setting = settings_[index];
    if (setting.given && parameter.kind != ArgumentKind::stages) {
      throw std::invalid_argument(std::string("augment: ") + type.name + ": " + parameter.name +
                                  " is given twice");
    }
    set(parameter, argument, setting);
    setting.given = true;
  }
  for (size_t i = 0; i < settings_.size(); ++i) {
    const Parameter& parameter = type.parameters[i];
    if (settings_[i].given) continue;
    if (!parameter.otherwise) {
      throw std::invalid_argument(std::string("augment: ") + type.name + " needs " +
                                  parameter.name + ": " + meaning(parameter.kind));
    }
    if (*parameter.otherwise) set(parameter, default_of(parameter), settings_[i]);
  }
}

void Arguments::set(const Parameter& parameter, const ArgumentText& text, Setting& setting) const {
  const ArgumentKind kind = parameter.kind;
  // Stages are put there by who makes the list (stage_list.cc).
  if (kind == ArgumentKind::stages) return;
  const auto refuse_with = [&](const std::string& rule) {
    refuse_argument(*type_, parameter.name, shown(text), rule);
  };
  if (takes_numbers(kind)) {
    if (text.kind == Kind::number) {
      setting.numbers = {text.number};
    } else if (text.kind == Kind::tuple) {
      setting.numbers = text.numbers;
    } else {
      refuse_with(meaning(kind));
    }
    const auto [least, most] = count_of(kind);
    const size_t count = setting.numbers.size();
    if (count < least || count > most || (kind == ArgumentKind::colour && count == 2)) {
      refuse_with(meaning(kind));
    }
    for (const double value : setting.numbers) {
      if (takes_whole_numbers(kind) && value != std::floor(value)) refuse_with(meaning(kind));
      if (!(value >= parameter.low && value <= parameter.high)) {
        refuse_with(number_text(parameter.low) + " to " + number_text(parameter.high));
      }
    }
    const bool ordered = kind == ArgumentKind::range || kind == ArgumentKind::spread;
    if (ordered && count == 2 && setting.numbers[0] > setting.numbers[1]) {
      refuse_with("(least, most), in this order");
    }
    return;
  }
  if (text.kind != Kind::word) refuse_with(meaning(kind));
  setting.word = text.word;
  if (kind == ArgumentKind::flag) {
    if (text.word != "True" && text.word != "False") refuse_with(meaning(kind));
    setting.numbers = {text.word == "True" ? 1.0 : 0.0};
  }
  if (kind == ArgumentKind::choice) {
    const auto found = std::find_if(parameter.choices.begin(), parameter.choices.end(),
                                    [&](const char* word) { return text.word == word; });
    if (found == parameter.choices.end()) refuse_with("one of " + list_words(parameter.choices));
    setting.numbers = {static_cast<double>(found - parameter.choices.begin())};
  }
}

const Arguments::Setting& Arguments::find(const char* name) const {
  for (size_t i = 0; i < settings_.size(); ++i) {
    if (std::strcmp(type_->parameters[i].name, name) == 0) return settings_[i];
  }
  throw std::logic_error(std::string(type_->name) + " has no parameter " + name);
}

std::array<double, 2> Arguments::range(const char* name) const {
  const std::vector<double>& values = numbers(name);
  return {values.front(), values.back()};
}

std::array<double, 2> Arguments::spread(const char* name, double middle, double lowest) const {
  const std::vector<double>& values = numbers(name);
  if (values.size() == 2) return {values[0], values[1]};
  return {std::max(lowest, middle - values[0]), middle + values[0]};
}

std::optional<Size> Arguments::size(const char* name) const {
  const std::vector<double>& values = numbers(name);
  if (values.empty()) return {};
  return Size{static_cast<int>(values.back()), static_cast<int>(values.front())};
}

Rgb Arguments::colour(const char* name) const {
  const std::vector<double>& values = numbers(name);
  Rgb colour;
  for (size_t c = 0; c < 3; ++c) {
    colour[c] = static_cast<uint8_t>(values[values.size() == 3 ? c : 0]);
  }
  return colour;
}

uint8_t Arguments::choice(const char* name) const { return static_cast<uint8_t>(numbers(name)[0]); }

void Arguments::refuse(const char* name, const std::string& rule) const {
  for (const Parameter& parameter : type_->parameters) {
    if (std::strcmp(parameter.name, name) != 0) continue;
    const Setting& setting = find(name);
    refuse_argument(
        *type_, name,
        setting.given || parameter.otherwise ? value_text(parameter, setting) : "not given", rule);
  }
  throw std::logic_error(std::string(type_->name) + " has no parameter " + name);
}

std::string Arguments::value_text(const Parameter& parameter, const Setting& setting,
                                  bool identity) const {
  switch (parameter.kind) {
    case ArgumentKind::flag:
      return setting.numbers[0] != 0 ? "True" : "False";
    case ArgumentKind::choice:
    case ArgumentKind::text:
      return std::string("'").append(setting.word).append("'");
    case ArgumentKind::stages: {
      std::string text;
      for (const SharedStages& stages : setting.stages) {
        text.append(text.empty() ? "" : ", ");
        text.append(identity ? stages->identity() : stages->describe());
      }
      return text;
    }
    default:
      return numbers_text(setting.numbers);
  }
}

std::string Arguments::describe() const { return text(false); }
std::string Arguments::identity() const { return text(true); }

std::string Arguments::text(bool identity) const {
  std::string arguments;
  bool places = true;  // whether arguments can still go by their places
  for (size_t i = 0; i < settings_.size(); ++i) {
    const Parameter& parameter = type_->parameters[i];
    const Setting& setting = settings_[i];
    Setting normal;
    if (parameter.otherwise && *parameter.otherwise) set(parameter, default_of(parameter), normal);
    const bool as_by_default =
        setting.numbers == normal.numbers && setting.word == normal.word && setting.stages.empty();
    if (parameter.otherwise && as_by_default) {
      places = false;
      continue;
    }
    arguments.append(arguments.empty() ? "" : ", ");
    // Arguments that must be given, and sizes, are clear without their names.
    const bool is_clear = !parameter.otherwise || parameter.kind == ArgumentKind::size;
    // Nothing goes by its place behind a name.
    places = places && is_clear;
    if (!places) arguments.append(parameter.name).append("=");
    arguments.append(value_text(parameter, setting, identity));
    places = places && parameter.kind != ArgumentKind::stages;
  }
  return arguments.empty() ? type_->name : std::string(type_->name) + "(" + arguments + ")";
}

}  // namespace stoker
