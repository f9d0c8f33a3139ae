// The products of matrices of winograd.cc, for one instruction set; included once for each, after
// highway.h.

// The guard is per target: Highway toggles HWY_TARGET_TOGGLE from one inclusion to the next.
#if defined(STOKER_TRAIN_WINOGRAD_KERNELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_TRAIN_WINOGRAD_KERNELS_INL_H
#undef STOKER_TRAIN_WINOGRAD_KERNELS_INL_H
#else
#define STOKER_TRAIN_WINOGRAD_KERNELS_INL_H
#endif

#include <algorithm>

#include "train/cpu/winograd_transforms_inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kPanelVectors = 16 / kLanes;

// One factor of a product, in panels of 16 channels. Element (row, k) of the left factor is at
// row * row_step + k % 16 * k_step + k / 16 * chunk_step.
struct LeftFactor {
  const float* data;
  int64_t chunk_step;
};

// Computes kRows rows of one panel of the product, or of kPanels neighbouring ones: the sums stay
// in registers. The right factor has 16 columns a row. Every sum is in order of k, whatever kRows
// is.
template <int kRows, int kPanels, int kRowStep, int kKStep>
HWY_INLINE void multiply_rows(const LeftFactor& left, int depth, const float* right,
                              int64_t right_panel, bool adds, float* product,
                              int64_t product_panel) {
  constexpr int kVectors = kPanels * kPanelVectors;
  const Tag d;
  Vector sums[kRows][kVectors];
  const auto at = [&](int r, int v) {
    return product + v / kPanelVectors * product_panel + r * 16 + v % kPanelVectors * kLanes;
  };
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[r][v] = adds ? hn::Load(d, at(r, v)) : hn::Zero(d);
  }
  const float* chunk = left.data;
  for (int k = 0; k < depth; k += 16, chunk += left.chunk_step) {
    const int count = std::min(16, depth - k);
    for (int i = 0; i < count; ++i, right += 16) {
      Vector columns[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        columns[v] =
            hn::Load(d, right + v / kPanelVectors * right_panel + v % kPanelVectors * kLanes);
      }
      for (int r = 0; r < kRows; ++r) {
        const Vector value = hn::Set(d, chunk[r * kRowStep + i * kKStep]);
        for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(value, columns[v], sums[r][v]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) hn::Store(sums[r][v], d, at(r, v));
  }
}

// As many sums as fit the registers beside a row of the right factor.
constexpr int kPanelsAtOnce = kLanes == 16 ? 2 : 1;
constexpr int kRowsAtOnce = kLanes == 16 ? 8 : kLanes == 8 ? 6 : 4;

template <int kRows, int kPanels, int kRowStep, int kKStep>
void multiply_last_rows(int rows, const LeftFactor& left, int depth, const float* right,
                        int64_t right_panel, bool adds, float* product, int64_t product_panel) {
  if constexpr (kRows > 0) {
    if (rows == kRows) {
      multiply_rows<kRows, kPanels, kRowStep, kKStep>(left, depth, right, right_panel, adds,
                                                      product, product_panel);
    } else {
      multiply_last_rows<kRows - 1, kPanels, kRowStep, kKStep>(
          rows, left, depth, right, right_panel, adds, product, product_panel);
    }
  }
}

template <int kPanels, int kRowStep, int kKStep>
void multiply_panels(int rows, LeftFactor left, int depth, const float* right, int64_t right_panel,
                     bool adds, float* product, int64_t product_panel) {
  for (; rows >= kRowsAtOnce; rows -= kRowsAtOnce) {
    multiply_rows<kRowsAtOnce, kPanels, kRowStep, kKStep>(left, depth, right, right_panel, adds,
                                                          product, product_panel);
    left.data += kRowsAtOnce * kRowStep;
    product += kRowsAtOnce * 16;
  }
  multiply_last_rows<kRowsAtOnce - 1, kPanels, kRowStep, kKStep>(
      rows, left, depth, right, right_panel, adds, product, product_panel);
}

// product (+)= left x right: `rows` rows, `panels` panels of 16 columns.
template <int kRowStep, int kKStep>
void multiply(int rows, int panels, const LeftFactor& left, int depth, const float* right,
              int64_t right_panel, bool adds, float* product, int64_t product_panel) {
  int p = 0;
  for (; p + kPanelsAtOnce <= panels; p += kPanelsAtOnce) {
    multiply_panels<kPanelsAtOnce, kRowStep, kKStep>(rows, left, depth, right + p * right_panel,
                                                     right_panel, adds, product + p * product_panel,
                                                     product_panel);
  }
  for (; p < panels; ++p) {
    multiply_panels<1, kRowStep, kKStep>(rows, left, depth, right + p * right_panel, right_panel,
                                         adds, product + p * product_panel, product_panel);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif
