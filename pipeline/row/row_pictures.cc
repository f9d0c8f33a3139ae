#include "pipeline/row/row_pictures.h"

#include <algorithm>

namespace stoker {
namespace {

// Draw numbers of a combining stage's own key, far from those of its picture.
constexpr uint32_t kPartner = 0x50415200, kPartnerSeed = 0x50415300;

class PicturePlanner {
 public:
  PicturePlanner(const StageList& stages, int64_t epoch,
                 const std::function<SampleId(const RandomKey&, uint32_t)>& partner,
                 std::vector<RowPicture>& pictures)
      : levels_(stages.levels()), epoch_(epoch), partner_(partner), pictures_(pictures) {}

  size_t last_level() const { return levels_.size() - 1; }

  void plan(SampleId id, uint64_t seed, size_t level) {
    if (level == 0) {
      pictures_.push_back({id, seed});
      return;
    }
    const Stage& stage = *levels_[level].combines;
    const RandomKey key = stage.own_key(seed, epoch_, id);
    const auto partners = static_cast<uint32_t>(stage.partners_of(seed, epoch_, id));
    plan(id, seed, level - 1);
    for (uint32_t i = 0; i < partners; ++i) {
      const SampleId partner = partner_(key, kPartner + i);
      const uint64_t partner_seed = key.bits(kPartnerSeed + i);
      if (stage.partner_stages()) {
        pictures_.push_back({partner, partner_seed, 0, 0, stage.partner_stages()});
      } else {
        plan(partner, partner_seed, level - 1);
      }
    }
    pictures_.push_back({id, seed, level, size_t{1} + partners});
  }

 private:
  const std::vector<StageLevel> levels_;
  const int64_t epoch_;
  const std::function<SampleId(const RandomKey&, uint32_t)>& partner_;
  std::vector<RowPicture>& pictures_;
};

}  // namespace

void plan_pictures(const StageList& stages, uint64_t seed, int64_t epoch, SampleId id,
                   const std::function<SampleId(const RandomKey& key, uint32_t draw)>& partner,
                   std::vector<RowPicture>& pictures) {
  pictures.clear();
  PicturePlanner planner(stages, epoch, partner, pictures);
  planner.plan(id, seed, planner.last_level());
}

std::array<SampleId, kMaxPictures - 1> draw_partners(const StageList& stages,
                                                     const SampleOrder& order,
                                                     const EpochKey& epoch, int64_t position) {
  std::array<SampleId, kMaxPictures - 1> drawn = RowNote::no_partners();
  // The last block is as long as the others; it begins earlier.
  const int64_t block = std::min(kPartnerBlock, order.length());
  const int64_t first = std::min(position / kPartnerBlock * kPartnerBlock, order.length() - block);
  size_t count = 0;
  const OrderedSample own = order.at(epoch, position);
  std::vector<RowPicture> pictures;
  plan_pictures(
      stages, repeat_seed(epoch.seed, own.repeat_index), epoch.epoch, own.id,
      [&](const RandomKey& key, uint32_t draw) {
        return drawn[count++] = order.at(epoch, first + key.below(draw, block)).id;
      },
      pictures);
  return drawn;
}

}  // namespace stoker
