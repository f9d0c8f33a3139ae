// Random shares of a whole, which the two AugMix stages blend with.
#pragma once

#include <cstdint>
#include <span>

#include "pipeline/random/random_key.h"

namespace stoker {

// So many numbers of the key are taken for each share.
inline constexpr uint32_t kDrawsPerShare = 256;

// Fills `shares` with parts of 1 that are distributed as Dirichlet(alpha, ..., alpha); two of them
// are those of Beta(alpha, alpha). Takes the key's numbers from `first` on. REQUIRES: alpha > 0.
void draw_shares(const RandomKey& key, uint32_t first, double alpha, std::span<double> shares);

}  // namespace stoker
