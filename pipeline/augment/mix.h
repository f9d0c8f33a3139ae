// Mixup and CutMix: a row's pixels become a mean of its own and its partner's, or get a box of the
// partner's, and its target becomes a mean of both labels. Two neighbouring positions of an epoch's
// order, 2k and 2k + 1, are partners, so that who meets whom does not depend on the batch size, the
// devices or the threads. The draws are pure functions of a RandomKey. Values; any thread.
//
// Mixup: Zhang et al., "mixup: Beyond Empirical Risk Minimization" (2018). CutMix: Yun et al.,
// "CutMix: Regularization Strategy to Train Strong Classifiers with Localizable Features" (2019),
// with the box of torchvision's transforms.v2.CutMix.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "decode/image.h"
#include "pipeline/target.h"

namespace stoker {

struct MixSpec {
  double mixup_alpha = 0;           // lambda ~ Beta(alpha, alpha); 0: no mixup, else 0.001..1000
  double cutmix_alpha = 0;          // the same for CutMix
  double probability = 1;           // of mixing a row at all
  double switch_probability = 0.5;  // of CutMix where both are on
  // One draw for all rows of a global batch rather than one per row. The pixels then depend on the
  // batch size.
  bool per_batch = false;
  bool operator==(const MixSpec&) const = default;

  bool on() const { return mixup_alpha > 0 || cutmix_alpha > 0; }
  // Throws InvalidField naming the field and its value.
  void validate() const;
};

enum class MixKind : uint8_t { none, mixup, cutmix };

// The mixing of one row. Trivially copyable: it travels with the batch in the row's note.
struct MixDraw {
  MixKind kind = MixKind::none;
  // The share of the row's own pixels and label; the partner has the rest. Mixup: a multiple of 1 /
  // kMixParts, so that it is exactly what the pixels have.
  float own_share = 1;
  Box box;  // CutMix: the output pixels that the partner's replace
};

// Draws for the row of a sample or, with `per_batch`, for all rows of a batch. `number` is the
// sample's id or the batch's step in the epoch. `spec` has been validated.
MixDraw draw_mix(const MixSpec& spec, Size output, uint64_t seed, int64_t epoch, int64_t number);

// Two rows that are each other's partners: u8 pixels, (height, width, 3), without gaps.
struct MixRow {
  uint8_t* pixels = nullptr;
  MixDraw draw;
};
// Each row gets its mean or its box from the partner's pixels as they were. `scratch` is grown as
// needed and kept for the next call.
void mix_rows(Size size, const MixRow& first, const MixRow& second, std::vector<uint8_t>& scratch);
int64_t mix_scratch_bytes(Size size);

// The columns that mixed batches have behind those of their source: `mix_label`, the partner's
// label, and `mix_weight`, the share of the row's own label. A row that is not mixed has its own
// label and 1.
inline constexpr size_t kMixColumns = 2;
std::span<const TargetColumn, kMixColumns> mix_columns();

}  // namespace stoker
