// Which pictures a row of several samples is made of, and with which seeds: a function of (seed,
// epoch, sample) and of the partners, which are drawn from the positions around the row's. Pure
// functions; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "pipeline/augment.h"
#include "pipeline/loader_types.h"
#include "pipeline/sample_order.h"

namespace stoker {

// Partners are of so many positions of the epoch's order, which a row shares with those beside it:
// the same blocks for all rows, so that a store reads nothing from far away.
inline constexpr int64_t kPartnerBlock = 1024;

// A picture of a row: `parts` is 0 for a sample's, otherwise so many of the finished pictures
// before it are combined, the last ones that are no part of another.
struct RowPicture {
  SampleId id = 0;
  uint64_t seed = 0;  // of its draws
  size_t level = 0;   // combining stages before it
  size_t parts = 0;
  const StageList* stages = nullptr;  // that are done to it; null: those of its level
};

// Returns the pictures, each behind its parts; the last is the row. `partner`: the number'th sample
// that is drawn.
void plan_pictures(const StageList& stages, uint64_t seed, int64_t epoch, SampleId id,
                   const std::function<SampleId(const RandomKey& key, uint32_t draw)>& partner,
                   std::vector<RowPicture>& pictures);

// Draws the partners of the row at a position of an epoch.
std::array<SampleId, kMaxPictures - 1> draw_partners(const StageList& stages,
                                                     const SampleOrder& order,
                                                     const EpochKey& epoch, int64_t position);

}  // namespace stoker
