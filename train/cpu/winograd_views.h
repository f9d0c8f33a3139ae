// Operands of winograd.cc's transforms and products. Values.
#pragma once

#include <algorithm>
#include <cstdint>

#include "train/cpu/winograd.h"

namespace stoker {

struct WinogradTile {
  int row, y, x;  // of its first pixel, which may lie outside
};

// The tiles of 4x4 outputs of all rows, in order.
struct WinogradTiles {
  int rows, down, across;

  int count() const { return rows * down * across; }
  // The tile shifted by `origin` pixels.
  WinogradTile at(int tile, int origin) const {
    return {tile / across / down, tile / across % down * 4 + origin, tile % across * 4 + origin};
  }
};

// Some of the panels of 16 channels of an output.
struct PanelRange {
  int first, count;

  // How many of `all` channels these are.
  int channels_of(int all) const { return std::min(count * 16, all - first * 16); }
};

// Activations in panels of 16 channels. A Number is a float or the bits of a bf16, maybe constant.
template <class Number>
struct ActivationView {
  Number* data;
  int channels, height, width;
  int64_t row_step, panel_step, line_step, pixel_step;
  bool padded;  // the last panel is stored whole

  ActivationView of(const PanelRange& some) const {
    ActivationView view = *this;
    view.data += some.first * panel_step;
    view.channels = some.channels_of(channels);
    return view;
  }
  int stored_channels() const { return padded ? (channels + 15) / 16 * 16 : channels; }
  Number* at(const WinogradTile& tile) const {
    return data + tile.row * row_step + tile.y * line_step + tile.x * pixel_step;
  }
  bool contains(const WinogradTile& tile, int y, int x) const {
    return static_cast<unsigned>(tile.y + y) < static_cast<unsigned>(height) &&
           static_cast<unsigned>(tile.x + x) < static_cast<unsigned>(width);
  }
};

// 36 matrices, one for each place in a transformed tile, in panels of 16 columns.
struct WinogradMatrices {
  float* data;
  int64_t matrix_step, panel_step;
};

}  // namespace stoker
