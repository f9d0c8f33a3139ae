#include "tools/option/renamed_options.h"

namespace stoker {
namespace {

constexpr RenamedOption kRenamed[] = {
    {"comm-dtype", "grad-wire"},
    {"rows", "batch"},
    {"build-seek-index", "seek-index", "auto"},
    {"rows-per-shard", "micro-batch"},
    {"crop", "augment", "random_resized_crop | flip"},
    {"flip", "augment", "random_resized_crop | flip(alternating=True)"},
    {"filter", "augment", "random_resized_crop(filter=bicubic)"},
    {"scale-min", "augment", "random_resized_crop(scale=(0.35, 1))"},
    {"scale-max", "augment", "random_resized_crop(scale=(0.08, 0.9))"},
    {"ratio-min", "augment", "random_resized_crop(ratio=(0.5, 1.5))"},
    {"ratio-max", "augment", "random_resized_crop(ratio=(0.5, 1.5))"},
    {"resize-short", "augment", "resize_center_crop(256)"},
    {"pad", "augment", "resize | random_crop(padding=4)"},
    {"pad-mode", "augment", "resize | random_crop(padding=4, mode=reflect)"},
    {"cutout", "augment", "random_resized_crop | flip | cutout(8)"},
    {"brightness", "augment", "random_resized_crop | flip | color_jitter(brightness=0.4)"},
    {"contrast", "augment", "random_resized_crop | flip | color_jitter(contrast=0.4)"},
    {"saturation", "augment", "random_resized_crop | flip | color_jitter(saturation=0.4)"},
    {"hue", "augment", "random_resized_crop | flip | color_jitter(hue=0.1)"},
    {"mixup", "augment", "random_resized_crop | flip | mix(mixup=0.2)"},
    {"cutmix", "augment", "random_resized_crop | flip | mix(cutmix=1)"},
};

}  // namespace

const RenamedOption* find_renamed(std::string_view old_name) {
  for (const RenamedOption& option : kRenamed) {
    if (old_name == option.old_name) return &option;
  }
  return nullptr;
}

}  // namespace stoker
