// Batches of random pixels with random edits, and what becomes of them by plain loops over pixels:
// what the twin, the kernel and the Stager are compared with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "staging/row_edits.h"

namespace stoker::testing {

struct EditedRows {
  int rows = 0, height = 0, width = 0;
  std::vector<uint8_t> images{};  // (rows, height, width, 3)
  std::vector<RowEdit> edits{};
  NoiseBytes noise{};

  RowEditArgs args() {
    return {.images = images.data(),
            .edits = edits.data(),
            .rows = rows,
            .height = height,
            .width = width,
            .noise = &noise};
  }
};

class EditMaker {
 public:
  explicit EditMaker(uint32_t seed) : random_(seed) {}

  EditedRows make(int rows, int height, int width) {
    EditedRows made{.rows = rows, .height = height, .width = width};
    made.images.resize(size_t{3} * static_cast<size_t>(rows) * static_cast<size_t>(height) *
                       static_cast<size_t>(width));
    for (uint8_t& value : made.images) value = byte();
    for (auto& channel : made.noise)
      std::generate(channel.begin(), channel.end(), [&] { return byte(); });
    for (int row = 0; row < rows; ++row) {
      const bool alone = row + 1 == rows && row % 2 == 0;
      made.edits.push_back(edit(height, width, alone));
    }
    return made;
  }

 private:
  uint32_t word() { return static_cast<uint32_t>(random_()); }
  uint8_t byte() { return static_cast<uint8_t>(word()); }
  int below(int bound) { return static_cast<int>(word() % static_cast<uint32_t>(bound)); }

  EditBox box(int height, int width) {
    EditBox made{.x = below(width), .y = below(height)};
    made.width = 1 + below(width - made.x);
    made.height = 1 + below(height - made.y);
    return made;
  }

  RowEdit edit(int height, int width, bool alone) {
    RowEdit made;
    made.erasing = static_cast<RowErasing>(below(3));
    made.erased = box(height, width);
    made.colour = {byte(), byte(), byte()};
    made.noise = {.key = {word(), word()}, .counter = {word(), word(), word()}};
    if (alone) return made;
    made.mixing = static_cast<RowMixing>(below(3));
    made.taken = box(height, width);
    // The ends come often.
    made.share = std::clamp(below(40000) - 3000, 0, 1 << kShareBits);
    return made;
  }

  std::mt19937 random_;
};

inline void erase_plainly(const EditedRows& batch, const RowEdit& edit, uint8_t* row) {
  if (edit.erasing == RowErasing::none) return;
  uint32_t number = 0;
  for (int y = edit.erased.y; y < edit.erased.y + edit.erased.height; ++y) {
    for (int x = edit.erased.x; x < edit.erased.x + edit.erased.width; ++x) {
      for (size_t channel = 0; channel < 3; ++channel, ++number) {
        uint8_t value = edit.colour[channel];
        if (edit.erasing == RowErasing::noise) {
          const auto& [a, b, c] = edit.noise.counter;
          const auto words = philox4x32({a, b, c, number / 5}, edit.noise.key);
          const uint64_t bits = (uint64_t{words[0]} << 32) + words[1];
          value = batch.noise[channel][(bits >> (number % 5 * 12)) & 4095];
        }
        row[3 * (y * batch.width + x) + static_cast<int>(channel)] = value;
      }
    }
  }
}

inline void mix_plainly(const EditedRows& batch, const RowEdit& edit, const uint8_t* partner,
                        uint8_t* row) {
  const EditBox& box = edit.taken;
  for (int i = 0; i < 3 * batch.height * batch.width; ++i) {
    const int x = i / 3 % batch.width, y = i / 3 / batch.width;
    const bool inside = x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;
    if (edit.mixing == RowMixing::mean) {
      row[i] = static_cast<uint8_t>(
          (edit.share * row[i] + (32768 - edit.share) * partner[i] + 16384) / 32768);
    } else if (edit.mixing == RowMixing::box && inside) {
      row[i] = partner[i];
    }
  }
}

inline std::vector<uint8_t> edited_plainly(const EditedRows& batch) {
  std::vector<uint8_t> images = batch.images;
  const size_t row_bytes = size_t{3} * static_cast<size_t>(batch.height * batch.width);
  for (size_t row = 0; row < batch.edits.size(); ++row) {
    erase_plainly(batch, batch.edits[row], images.data() + row * row_bytes);
  }
  const std::vector<uint8_t> erased = images;
  for (size_t row = 0; row < batch.edits.size(); ++row) {
    if ((row ^ 1) >= batch.edits.size()) continue;
    mix_plainly(batch, batch.edits[row], erased.data() + (row ^ 1) * row_bytes,
                images.data() + row * row_bytes);
  }
  return images;
}

}  // namespace stoker::testing
