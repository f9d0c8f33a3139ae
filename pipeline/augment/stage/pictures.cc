#include <algorithm>
#include <stdexcept>

#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// The name by which programs call the sample's own picture.
constexpr std::string_view kOwnPicture = "image";

[[noreturn]] void refuse_pictures(const std::string& problem) {
  throw std::invalid_argument(std::string("augment: pictures: ").append(problem));
}

// Each list is read by itself, so that the rows of a picture do not depend on the other lists.
StageList list_of_picture(const ArgumentText& argument) {
  if (argument.kind == ArgumentText::Kind::list) return StageList(argument.stages);
  if (argument.kind == ArgumentText::Kind::word && !argument.quoted) {
    return StageList({{argument.word, {}}});
  }
  refuse_pictures(std::string("a list of stages is missing: pictures(LIST, ")
                      .append(argument.name.empty() ? "NAME" : argument.name)
                      .append("=LIST)"));
}

void check_picture(const std::string& name, const std::vector<AugmentView>& before) {
  if (name == kOwnPicture) {
    refuse_pictures("the list of the sample's own picture comes first, without a name");
  }
  if (std::ranges::any_of(before, [&](const AugmentView& view) { return view.picture == name; })) {
    refuse_pictures(std::string(name.empty() ? "a list without a name" : name)
                        .append(" is given twice: pictures(LIST, NAME=LIST)"));
  }
}

}  // namespace

const StageType kPictures{
    .name = "pictures",
    .help = "A list for each picture of a sample: its own, and further ones by name. Stands alone",
    .details =
        "Of samples that have several pictures: an image and its control map, before and after,\n"
        "left and right. The list of the own picture comes first. What same(...) draws is the "
        "same\n"
        "for all; everything else each picture draws for itself:\n"
        "  pictures(same(random_crop(512) | flip) | color_jitter(0.2),\n"
        "           control=same(random_crop(512) | flip))\n"
        "In Python, Batch.pictures has their rows.",
    .parameters = {{"stages", ArgumentKind::stages, nullptr}},
    .make = nullptr};  // no stage of a list

std::vector<AugmentView> pictures_of(const StageText& text) {
  std::vector<AugmentView> views;
  for (const ArgumentText& argument : text.arguments) {
    if (views.empty() && !argument.name.empty()) {
      refuse_pictures("the list of the sample's own picture comes first, without a name");
    }
    check_picture(argument.name, views);
    StageList list = list_of_picture(argument);
    const Size size = list.size({}, {}).value_or(Size{});
    views.push_back({size, std::move(list), argument.name});
  }
  if (views.size() < 2 || views.size() > kMaxPictures) {
    refuse_pictures(std::to_string(views.size())
                        .append(" lists, must be 2 to ")
                        .append(std::to_string(kMaxPictures))
                        .append(": pictures(LIST, NAME=LIST)"));
  }
  return views;
}

}  // namespace stoker
