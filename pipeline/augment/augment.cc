#include "pipeline/augment.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "pipeline/augment/program.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

std::string row_size_text(Size size) {
  return std::to_string(size.width) + "x" + std::to_string(size.height);
}

[[noreturn]] void refuse_augment(const std::string& problem) {
  throw std::invalid_argument("augment: " + problem);
}

void check_output(Size size) {
  const auto [shorter, longer] = std::minmax(size.width, size.height);
  if (shorter >= 1 && longer <= kMaxSide) return;
  refuse_augment("rows of " + row_size_text(size) + " pixels; sides must be 1.." +
                 std::to_string(kMaxSide));
}

// Two operations of one name would draw the same numbers.
void check_names(const StageList& stages) {
  std::set<std::string> names;
  for (const Stage& stage : stages.stages()) {
    const std::string& identity = stage.identity();
    if (!identity.starts_with("operation(")) continue;
    // The probability behind the name does not change the draws.
    const std::string name = identity.substr(0, identity.rfind(')') + 1);
    if (!names.insert(name).second) refuse_augment(name + " is there twice");
  }
}

// `size`: of the source images, or none. `must_know`: refuses lists whose rows have no one size.
void check_view(const AugmentView& view, std::optional<Size> size, bool must_know) {
  check_output(view.output);
  check_names(view.stages);
  const std::optional<Size> last = view.stages.size(size, view.output);
  const std::string text = std::string("'").append(view.stages.describe()).append("'");
  if (!last && must_know) {
    refuse_augment(
        text + " gives images of different sizes: rows need one, as random_resized_crop, " +
        "resize_center_crop, center_crop or resize(size=(" + std::to_string(view.output.height) +
        ", " + std::to_string(view.output.width) + ")) give it");
  }
  if (last && *last != view.output) {
    refuse_augment("rows of " + row_size_text(view.output) + " pixels, but " + text +
                   " ends with images of " + row_size_text(*last));
  }
}

// The pictures of a row: those of a stage's partners are made as its own, or of one sample each.
size_t pictures_of(const StageList& stages) {
  size_t pictures = 1;
  for (const Stage& stage : stages.stages()) {
    const auto partners = static_cast<size_t>(stage.partners());
    pictures += stage.partner_stages() ? partners : partners * pictures;
    if (pictures > kMaxPictures) return pictures;
  }
  return pictures;
}

// `size`: of the source images, or none. Pictures that lie one over the other have one size.
void check_combinations(const StageList& stages, const std::optional<Size> source, Size output,
                        bool must_know) {
  std::optional<Size> size = source;
  if (pictures_of(stages) > kMaxPictures) {
    refuse_augment("'" + stages.describe() + "' makes a row of more than " +
                   std::to_string(kMaxPictures) + " samples");
  }
  for (const Stage& stage : stages.stages()) {
    const bool is_overlaid = stage.partners() == 1;
    if (is_overlaid && must_know && !size) {
      refuse_augment(stage.describe() +
                     " takes images of one size: a stage before it must make them so, as "
                     "letterbox, fixed_size_crop or center_crop");
    }
    const StageList* const partner = stage.partner_stages();
    if (partner && must_know && partner->size(source, output) != size) {
      refuse_augment(stage.describe() + ": '" + partner->describe() + "' does not make images of " +
                     row_size_text(*size) + " pixels, as the stages before");
    }
    size = stage.size(size, output);
  }
}

// A view's seed is the Loader's, mixed with the view's number.
constexpr uint64_t kViewSeed = 0x7669657773ull;

std::string with_mix(std::string text, const MixSpec& mix) {
  if (mix.on()) text.append(text.empty() ? "" : " | ").append(mix_text(mix));
  return text;
}

// Views of the same stages and size that follow each other are counted.
std::string views_text(const AugmentSpec& spec, std::string (StageList::*text)() const) {
  std::vector<std::string> lists;
  std::vector<double> counts;
  for (int view = 0; view < spec.views(); ++view) {
    const std::string list = (spec.view(view).stages.*text)();
    if (!lists.empty() && lists.back() == list) {
      ++counts.back();
      continue;
    }
    lists.push_back(list);
    counts.push_back(1);
  }
  std::string all;
  for (const std::string& list : lists) all.append(all.empty() ? "" : ", ").append(list);
  return std::string("views(").append(all).append(", counts=").append(numbers_text(counts)) + ")";
}

std::string pictures_text(const AugmentSpec& spec, std::string (StageList::*text)() const) {
  std::string all = (spec.stages.*text)();
  for (const AugmentView& view : spec.more_views) {
    all.append(", ").append(view.picture).append("=").append((view.stages.*text)());
  }
  return std::string("pictures(").append(all).append(")");
}

// Several views are written so.
std::string several_text(const AugmentSpec& spec, std::string (StageList::*text)() const) {
  return spec.has_pictures() ? pictures_text(spec, text) : views_text(spec, text);
}

// The stages that draw alike for all pictures: those of each list are the same, or none.
void check_shared(const AugmentSpec& spec) {
  std::string first;
  int lists = 0;
  for (int number = 0; number < spec.views(); ++number) {
    std::string shared;
    const AugmentView view = spec.view(number);
    for (const Stage& stage : view.stages.stages()) {
      if (stage.type() != &kSame) continue;
      shared.append(shared.empty() ? "" : " | ").append(stage.identity());
    }
    if (shared.empty()) continue;
    if (!spec.has_pictures()) refuse_augment(shared + " stands in a list of pictures(...)");
    if (++lists == 1) first = shared;
    if (shared != first) {
      refuse_augment("same(...) must be the same in all lists that have it, and there are '" +
                     first + "' and '" + shared + "'");
    }
  }
  if (lists == 1) {
    refuse_augment("'" + first + "' is in one list of pictures(...) alone: no other picture " +
                   "draws the same");
  }
}

}  // namespace

AugmentSpec::AugmentSpec(std::string_view text, Size size) : output(size) {
  set_stages(text);
  if (output == Size{}) output = stages.size({}, {}).value_or(Size{});
  validate();
}

void AugmentSpec::set_stages(std::string_view text) {
  std::vector<StageText> texts = parse_stages(text);
  AugmentSpec read;
  const std::string alone = texts.size() == 1 ? texts[0].name : "";
  read.more_views = alone == kViews.name      ? views_of(texts[0])
                    : alone == kPictures.name ? pictures_of(texts[0])
                                              : crops_of(texts, read.crops);
  if (!read.more_views.empty()) {
    read.stages = read.more_views.front().stages;
    read.more_views.erase(read.more_views.begin());
  } else {
    if (texts.back().name == kMix.name) {
      read.mix = mix_of(texts.back());
      texts.pop_back();
    }
    read.stages = StageList(texts);
  }
  read.output = output;
  *this = std::move(read);
}

std::string AugmentSpec::stages_text() const {
  if (!crops.empty()) return crops;
  if (!more_views.empty()) return several_text(*this, &StageList::text);
  return with_mix(stages.text(), mix);
}

AugmentSpec AugmentSpec::with_output(Size size) const {
  AugmentSpec spec = *this;
  spec.output = size;
  return spec;
}

AugmentView AugmentSpec::view(int number) const {
  if (number == 0) return {output, stages, {}};
  AugmentView other = more_views.at(static_cast<size_t>(number) - 1);
  if (other.output == Size{}) other.output = output;
  return other;
}

void AugmentSpec::add(const PixelOperation& operation) {
  AugmentSpec with = *this;
  with.stages.add(operation_stage(operation));
  check_names(with.stages);
  *this = std::move(with);
}

void AugmentSpec::validate() const {
  mix.validate();
  if (mix.on() && !more_views.empty()) {
    refuse_augment("mix and views: rows of one view can be mixed only");
  }
  for (int view = 0; view < views(); ++view) {
    const StageList& list = this->view(view).stages;
    if (list.combines() && (mix.on() || views() > 1)) {
      refuse_augment(std::string("'")
                         .append(list.describe())
                         .append("' combines several samples: neither mix nor views nor pictures"));
    }
  }
  check_shared(*this);
  check_combinations(stages, {}, output, false);
  for (int view = 0; view < views(); ++view) check_view(this->view(view), {}, false);
}

void AugmentSpec::validate_for(std::optional<Size> source, const PictureSizes& pictures) const {
  validate();
  check_combinations(stages, source, output, true);
  for (int number = 0; number < views(); ++number) {
    const AugmentView view = this->view(number);
    const auto named = pictures.find(view.picture);
    const std::optional<Size> other = named == pictures.end() ? std::nullopt : named->second;
    check_view(view, view.picture.empty() ? source : other, true);
  }
}

std::string AugmentSpec::describe() const {
  const std::string text = more_views.empty() ? with_mix(stages.identity(), mix)
                                              : several_text(*this, &StageList::identity);
  const std::string views = crops.empty() ? text : text + " of one image";
  return "output=" + row_size_text(output) + (views.empty() ? "" : " " + views);
}

void draw_augmentation(const AugmentSpec& spec, Size source, uint64_t seed, int64_t epoch,
                       int64_t sample, Draws& draws, int view, Size output) {
  const StageList* list = &spec.stages;
  if (output == Size{}) output = spec.output;
  const uint64_t shared_seed = seed;
  if (view > 0) {
    const AugmentView& other = spec.more_views[static_cast<size_t>(view) - 1];
    list = &other.stages;
    if (other.output != Size{}) output = other.output;
    if (spec.crops.empty()) seed ^= RandomKey(kViewSeed, 0, view).bits(0);
  }
  draws.begin_picture(source, output, seed, shared_seed, epoch, sample);
  for (const Stage& stage : list->stages()) {
    stage.draw(draws);
    if (!draws.failure().empty()) return;
  }
}

void draw_example(const AugmentView& view, size_t level, Size source, int64_t sample, Draws& draws,
                  std::vector<size_t>* ends) {
  const std::vector<StageLevel> levels = view.stages.levels();
  for (size_t i = 0; i <= level; ++i) {
    if (const Stage* const stage = levels[i].combines) {
      const std::vector<Size> alike(1 + static_cast<size_t>(stage->partners()), source);
      source = stage->combine(stage->own_key(0, 0, sample), alike).canvas;
    }
    draws.begin(source, view.output, 0, 0, sample);
    for (const Stage& stage : levels[i].stages) {
      if (draws.failure().empty()) stage.draw(draws);
      if (ends && i == level) ends->push_back(draws.steps().size());
    }
    source = draws.size();
  }
}

std::array<double, 4> shown_box(const Draws& draws) {
  const DecodePlan plan = plan_decode(draws);
  const auto& [crop, resized, window, flip, filter] = plan.crop;
  const double scale_x = static_cast<double>(crop.width) / resized.width;
  const double scale_y = static_cast<double>(crop.height) / resized.height;
  // A window as wide as the resized crop is the crop, without rounding.
  const bool whole_x = window.width == resized.width, whole_y = window.height == resized.height;
  return {crop.x + (window.x + plan.shift_x) * scale_x,
          crop.y + (window.y + plan.shift_y) * scale_y,
          whole_x ? crop.width : window.width * scale_x,
          whole_y ? crop.height : window.height * scale_y};
}

bool is_mirrored(const Draws& draws) {
  const auto steps = draws.steps();
  return std::count_if(
             steps.begin(), steps.end(),
             [](const PixelStep& step) { return step.kind->name == std::string_view("flip"); }) %
             2 ==
         1;
}

}  // namespace stoker
