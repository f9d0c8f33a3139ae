#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

StageActions make_copy_paste(const Arguments&) {
  return {.draw = {}, .combine = [](const RandomKey& key, std::span<const Size> pictures) {
            Combination paste = overlaid(CombinationKind::paste, pictures);
            paste.choices = key;
            return paste;
          }};
}

}  // namespace

const StageType kCopyPaste{
    .name = "copy_paste",
    .help = "Some objects of another sample, cut out by their masks and pasted at their places",
    .details =
        "Ghiasi et al., \"Simple Copy-Paste\" (2021), as torchvision's references do it without\n"
        "blending: of n objects with masks n are drawn, each any number of times; crowds are\n"
        "left out. Boxes and masks below are cut; who is covered as a whole is dropped. The\n"
        "stages before give all images one size, as scale_jitter with fixed_size_crop.",
    .parameters = {kProbability},
    .make = make_copy_paste,
    .partners = 1};

}  // namespace stoker
