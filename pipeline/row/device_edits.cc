#include "pipeline/row/device_edits.h"

#include <algorithm>
#include <type_traits>

#include "decode/pixel_ops.h"

namespace stoker {
namespace {

static_assert(kMixParts == 1 << kShareBits && std::is_same_v<NoiseBytes, ErasingNoise>);

EditBox edit_box(const Box& box) { return {box.x, box.y, box.width, box.height}; }

}  // namespace

DeviceEdits device_edits(const AugmentSpec& augment, const std::vector<Device*>& devices,
                         const LoaderOptions& options) {
  const bool hidden = std::none_of(devices.begin(), devices.end(),
                                   [](const Device* device) { return device->host_accessible(); });
  const bool has_one_size = !options.shapes && !options.buckets;
  if (!hidden || !has_one_size || augment.views() > 1 || options.format || options.digests) {
    return {};
  }
  return {.erases = last_erasing(augment.stages) != nullptr, .mixes = augment.mix.on()};
}

AugmentSpec without(const AugmentSpec& augment, const DeviceEdits& edits) {
  AugmentSpec rest = augment;
  if (edits.mixes) rest.mix = {};
  if (!edits.erases) return rest;
  rest.stages = {};
  const auto stages = augment.stages.stages();
  for (const Stage& stage : stages.first(stages.size() - 1)) rest.stages.add(stage);
  return rest;
}

void set_erasing(const Erasing& erasing, RowEdit& edit) {
  edit.erased = edit_box(erasing.box);
  edit.colour = erasing.colour;
  edit.erasing = erasing.noise ? RowErasing::noise : RowErasing::colour;
  if (erasing.noise) edit.noise = erasing.noise->draws();
}

void set_mixing(const MixDraw& draw, RowEdit& edit) {
  if (draw.kind == MixKind::mixup) {
    edit.mixing = RowMixing::mean;
    edit.share = static_cast<int32_t>(draw.own_share * kMixParts);
  } else if (draw.kind == MixKind::cutmix) {
    edit.mixing = RowMixing::box;
    edit.taken = edit_box(draw.box);
  }
}

}  // namespace stoker
