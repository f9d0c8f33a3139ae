#include <stdexcept>
#include <string>

#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions refuse_five(const Arguments&) {
  throw std::invalid_argument("augment: five_crop must be the last stage, outside of other stages");
}
StageActions refuse_ten(const Arguments&) {
  throw std::invalid_argument("augment: ten_crop must be the last stage, outside of other stages");
}

ArgumentText word_text(const char* name, const std::string& word) {
  ArgumentText text;
  text.name = name;
  text.kind = ArgumentText::Kind::word;
  text.word = word;
  text.quoted = true;
  return text;
}

ArgumentText size_text(Size size) {
  ArgumentText text;
  text.name = "size";
  if (size.width == size.height) {
    text.number = size.width;
  } else {
    text.kind = ArgumentText::Kind::tuple;
    text.numbers = {double(size.height), double(size.width)};
  }
  return text;
}

// "flip(p=1)"
StageText always(const StageType& type) {
  ArgumentText p;
  p.name = "p";
  p.number = 1;
  return {type.name, {p}};
}

// Adds the four corners and the centre of the image that `before` makes, in torchvision's order.
// Each list is read alone, so that equal stages have equal keys.
void add_five(std::vector<StageText> before, const std::optional<Size>& size,
              std::vector<AugmentView>& views) {
  const auto add = [&](const StageType& type, std::vector<ArgumentText> arguments) {
    if (size) arguments.push_back(size_text(*size));
    before.push_back({type.name, std::move(arguments)});
    views.push_back({size.value_or(Size{}), StageList(before)});
    before.pop_back();
  };
  for (const char* corner : kCornerNames) add(kCornerCrop, {word_text("corner", corner)});
  add(kCenterCrop, {});
}

}  // namespace

std::vector<AugmentView> crops_of(std::vector<StageText> texts, std::string& text) {
  const bool is_ten = texts.back().name == kTenCrop.name;
  if (!is_ten && texts.back().name != kFiveCrop.name) return {};
  const Arguments arguments = read_arguments(is_ten ? kTenCrop : kFiveCrop, texts.back());
  texts.pop_back();
  text = StageList(texts).text();
  text.append(text.empty() ? "" : " | ").append(arguments.describe());
  std::vector<AugmentView> views;
  add_five(texts, arguments.size("size"), views);
  if (is_ten) {
    texts.push_back(always(arguments.flag("vertical_flip") ? kVerticalFlip : kFlip));
    add_five(texts, arguments.size("size"), views);
  }
  return views;
}

const StageType kFiveCrop{
    .name = "five_crop",
    .help = "Five views: the four corners and the centre of one image. Stands last",
    .details =
        "torchvision's FiveCrop: upper left, upper right, lower left and lower right corner,\n"
        "and the centre. What the stages before draw is the same for all: resize(256) |\n"
        "five_crop(224). In Python, Batch.views has them.",
    .parameters = {{"size", ArgumentKind::size, "", 1, kMaxSide}},
    .make = refuse_five};

const StageType kTenCrop{
    .name = "ten_crop",
    .help = "Ten views: those of five_crop, and those of the mirrored image. Stands last",
    .details = "torchvision's TenCrop: mirrored left to right, or top to bottom.",
    .parameters = {{"size", ArgumentKind::size, "", 1, kMaxSide},
                   {"vertical_flip", ArgumentKind::flag, "False"}},
    .make = refuse_ten};

}  // namespace stoker
