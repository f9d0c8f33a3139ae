#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>

#include "pipeline/augment/stage.h"
#include "pipeline/augment/stages.h"
#include "pipeline/files/digest.h"

namespace stoker {
namespace {

// The number of the draw that decides whether a stage is applied, with the stage's own salt.
constexpr uint32_t kApplied = 0x41505000;

uint64_t salt_of(const StageType& type, int occurrence) {
  const std::string place = std::to_string(occurrence);
  return text_digest(std::string("stoker stage ").append(type.name).append(" ").append(place));
}

void append_stage(const std::string& stage, std::string& list) {
  list.append(list.empty() ? "" : " | ").append(stage);
}

std::string names_of_all() {
  std::string all;
  for (const StageType* type : all_stages()) {
    all.append(all.empty() ? "" : ", ").append(type->name);
  }
  return all;
}

}  // namespace

// Makes the stages of one text. The keys of a stage depend on how many of its name come before it
// in the whole text, inner lists included, so that no stage moves the draws of another.
class StageMaker {
 public:
  void fill(const std::vector<StageText>& texts, StageList& list) {
    for (const StageText& text : texts) list.stages_.push_back(make(text));
  }

  Arguments arguments_of(const StageType& type, const StageText& text) {
    Arguments arguments(type, text);
    for (size_t i = 0; i < type.parameters.size(); ++i) {
      if (type.parameters[i].kind == ArgumentKind::stages) {
        const Parameter& parameter = type.parameters[i];
        inner_lists(type, parameter, text, arguments.settings_[i]);
        if (arguments.settings_[i].stages.size() > parameter.high) {
          arguments.refuse(parameter.name, "one list");
        }
      }
    }
    return arguments;
  }

 private:
  Stage make(const StageText& text) {
    const StageType* type = find_stage(text.name);
    if (!type) {
      throw std::invalid_argument("augment: there is no stage " + text.name + "; there are " +
                                  names_of_all());
    }
    if (type == &kPictures) {
      throw std::invalid_argument("augment: pictures must stand alone: pictures(LIST, NAME=LIST)");
    }
    const int occurrence = seen_[type]++;
    return {*type, arguments_of(*type, text), occurrence};
  }

  void inner_lists(const StageType& type, const Parameter& parameter, const StageText& text,
                   Arguments::Setting& setting) {
    for (const ArgumentText& argument : text.arguments) {
      if (!argument.name.empty() && argument.name != parameter.name) continue;
      auto list = std::make_shared<StageList>();
      // The draws that pictures have in common do not depend on the stages around them.
      StageMaker apart;
      StageMaker& maker = &type == &kSame ? apart : *this;
      if (argument.kind == ArgumentText::Kind::list) {
        maker.fill(argument.stages, *list);
      } else if (argument.kind == ArgumentText::Kind::word && !argument.quoted) {
        maker.fill({{argument.word, {}}}, *list);
      } else {
        throw std::invalid_argument(std::string("augment: ") + type.name + ": " + parameter.name +
                                    " must be stages, as in " + type.name + "(flip | invert)");
      }
      for (const Stage& stage : list->stages()) {
        const bool is_shared = stage.type() == &kSame;
        if (stage.partners() == 0 && !is_shared) continue;
        throw std::invalid_argument(
            std::string("augment: ") + stage.type()->name +
            (is_shared ? " stands in a list of pictures(...)" : " combines several samples") +
            ": it cannot stand inside " + type.name);
      }
      setting.stages.push_back(std::move(list));
    }
  }

  std::map<const StageType*, int> seen_;
};

Stage::Stage(const StageType& type, const Arguments& arguments, int occurrence)
    : type_(&type),
      describe_(arguments.describe()),
      actions_(type.make(arguments)),
      own_salt_(salt_of(type, occurrence)) {
  salt_ = type.shares_key && occurrence == 0 ? 0 : own_salt_;
  for (const Parameter& parameter : type.parameters) {
    const bool is_p = parameter.name == std::string("p");
    if (is_p && !type.draws_probability) probability_ = arguments.real("p");
  }
  identity_ = arguments.identity();
  if (!actions_.identity.empty()) {
    const std::string p = probability_ < 1 ? ", p=" + number_text(probability_) : "";
    identity_ = actions_.identity + p;
  }
}

Stage::Stage(StageActions actions)
    : describe_(actions.identity), identity_(actions.identity), actions_(std::move(actions)) {}

bool Stage::is_applied(uint64_t seed, int64_t epoch, int64_t sample) const {
  return probability_ == 1 || own_key(seed, epoch, sample).uniform(kApplied) >= 1 - probability_;
}

void Stage::draw(Draws& draws) const {
  if (!actions_.draw) return;
  if (probability_ < 1 && draws.key(own_salt_).uniform(kApplied) < 1 - probability_) return;
  actions_.draw({salt_, draws.key(salt_)}, draws);
}

std::optional<Size> Stage::size(std::optional<Size> before, Size output) const {
  if (!actions_.size) return before;
  std::optional<Size> after = actions_.size(before, output);
  // That of the rows, which is not known yet.
  if (after == Size{}) after.reset();
  // A stage that is left out of some rows changes the size of the others only; one that combines
  // pictures makes its canvas of one picture, too.
  if (probability_ < 1 && after != before && !actions_.combine) return {};
  return after;
}

StageList::StageList(std::string_view text) : StageList(parse_stages(text)) {}
StageList::StageList(const std::vector<StageText>& texts) { StageMaker().fill(texts, *this); }

Arguments read_arguments(const StageType& type, const StageText& text) {
  return StageMaker().arguments_of(type, text);
}

void StageList::draw(Draws& draws) const {
  for (const Stage& stage : stages_) stage.draw(draws);
}

std::optional<Size> StageList::size(std::optional<Size> before, Size output) const {
  for (const Stage& stage : stages_) before = stage.size(before, output);
  return before;
}

bool StageList::combines() const {
  return std::ranges::any_of(stages_, [](const Stage& stage) { return stage.partners() > 0; });
}

std::vector<StageLevel> StageList::levels() const {
  std::vector<StageLevel> levels(1);
  size_t first = 0;
  for (size_t i = 0; i <= stages_.size(); ++i) {
    const bool is_end = i == stages_.size();
    if (!is_end && stages_[i].partners() == 0) continue;
    levels.back().stages = std::span(stages_).subspan(first, i - first);
    if (!is_end) levels.push_back({&stages_[i]});
    first = i + 1;
  }
  return levels;
}

std::string StageList::describe() const {
  std::string text;
  for (const Stage& stage : stages_) append_stage(stage.describe(), text);
  return text;
}

std::string StageList::text() const {
  std::string text;
  for (const Stage& stage : stages_) {
    if (stage.type()) append_stage(stage.describe(), text);
  }
  return text;
}

std::string StageList::identity() const {
  std::string text;
  for (const Stage& stage : stages_) append_stage(stage.identity(), text);
  return text;
}

namespace {

constexpr auto pointers_to(const auto&... types) { return std::array{&types...}; }

}  // namespace

std::span<const StageType* const> all_stages() {
  static constexpr auto kAll = pointers_to(STOKER_STAGES);
  return kAll;
}

const StageType* find_stage(std::string_view name) {
  const auto all = all_stages();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const StageType* type) { return type->name == name; });
  return found == all.end() ? nullptr : *found;
}

}  // namespace stoker
