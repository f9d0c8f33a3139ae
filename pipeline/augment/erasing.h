// The erasing of a row, for a device that erases finished rows itself
// (pipeline/row/device_edits.h) instead of the row's steps. Implemented in stage/random_erasing.cc.
// Pure functions; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "decode/image.h"
#include "decode/pixel/colour.h"
#include "pipeline/augment/draws.h"
#include "pipeline/augment/stage.h"

namespace stoker {

// Bytes that are distributed as normal numbers around a mean, by channel: entry i is the value
// below which a share (i + 1/2) / 4096 lies. So 12 random bits choose one.
using ErasingNoise = std::array<std::array<uint8_t, 4096>, 3>;

// A box inside the row that becomes one colour, or noise.
struct Erasing {
  Box box;
  Rgb colour{};
  // The key whose draws are the noise: value i of the box, (height, width, 3), has bits
  // [12 * (i % 5), 12 * (i % 5) + 12) of draw i / 5. None: the box has the colour.
  std::optional<RandomKey> noise{};
};

// Returns the last stage of a list if it is random_erasing, which is then applied to finished rows.
// Otherwise null.
const Stage* last_erasing(const StageList& stages);
// Draws what such a stage does to a row of this size; nothing: the row stays as it is. `draws` is
// only memory.
std::optional<Erasing> draw_erasing(const Stage& stage, Size row, uint64_t seed, int64_t epoch,
                                    int64_t sample, Draws& draws);
// The bytes of its noise; null: it has a colour.
std::shared_ptr<const ErasingNoise> erasing_noise(const Stage& stage);

}  // namespace stoker
