#include "pipeline/augment/draws.h"

#include <utility>

#include "pipeline/augment/grammar.h"
#include "pipeline/augment/stage.h"

namespace stoker {

void Draws::carry(const Annotations* annotations, int keypoints) {
  carried_ = annotations;
  keypoints_ = keypoints;
}

void Draws::begin(Size source, Size output, uint64_t seed, int64_t epoch, int64_t sample) {
  begin_picture(source, output, seed, seed, epoch, sample);
}

void Draws::begin_picture(Size source, Size output, uint64_t seed, uint64_t shared_seed,
                          int64_t epoch, int64_t sample) {
  source_ = source;
  output_ = output;
  seed_ = seed;
  shared_seed_ = shared_seed;
  epoch_ = epoch;
  sample_ = sample;
  steps_.clear();
  shared_sizes_.clear();
  failure_.clear();
  is_begun_ = false;
}

void Draws::draw_shared(const StageList& stages, uint64_t salt) {
  shared_sizes_.push_back(size());
  const uint64_t own = std::exchange(seed_, shared_seed_ ^ salt);
  stages.draw(*this);
  seed_ = own;
  shared_sizes_.push_back(size());
}

const ObjectMover& Draws::objects() {
  if (!is_begun_) {
    static const Annotations kNothing;
    objects_.begin(carried_ ? *carried_ : kNothing, carried_ ? keypoints_ : 0);
    moved_ = 0;
    is_begun_ = true;
  }
  for (; moved_ < steps_.size(); ++moved_) objects_.move(movement(moved_));
  return objects_;
}

Movement Draws::movement(size_t step) const {
  const Size before = step == 0 ? source_ : steps_[step - 1].size;
  return {steps_[step].kind->motion, before, steps_[step].size, steps_[step].values};
}

void Draws::fail_to_move(const PixelKind& kind) {
  fail(std::string(kind.name) + ": what lies on the picture (boxes, masks) cannot follow it");
}

std::string step_text(const PixelStep& step) {
  const PixelKind& kind = *step.kind;
  std::string arguments;
  const auto add = [&](const std::string& name, const std::string& value) {
    arguments.append(arguments.empty() ? "" : ", ").append(name).append("=").append(value);
  };
  for (size_t i = 0; i < kind.values.size() && kind.values[i]; ++i) {
    add(kind.values[i], number_text(step.values[i]));
  }
  if (kind.choice) add(kind.choice, std::string("'").append(kind.choices[step.choice]).append("'"));
  if (kind.fill) {
    add("fill", numbers_text({double(step.fill[0]), double(step.fill[1]), double(step.fill[2])}));
  }
  return arguments.empty() ? kind.name : std::string(kind.name) + "(" + arguments + ")";
}

std::string steps_text(std::span<const PixelStep> steps) {
  std::string text;
  for (const PixelStep& step : steps)
    text.append(text.empty() ? "" : " | ").append(step_text(step));
  return text;
}

}  // namespace stoker
