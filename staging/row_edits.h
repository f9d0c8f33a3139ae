// Changes finished rows on the device that holds them, in place: a box of a row is erased (random
// erasing), then the two rows of a pair, 2k and 2k + 1, are mixed (mixup, CutMix). GPUs run one
// kernel for both, other devices a plain twin of it; the bytes are those that pipeline/ makes on
// the host. What is done to a row is its RowEdit, which travels with it. Values; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "staging/batch_layout.h"
#include "staging/device.h"
#include "staging/philox.h"

namespace stoker {

// Columns [x, x + width), lines [y, y + height), in pixels; inside the row.
struct EditBox {
  int32_t x = 0, y = 0, width = 0, height = 0;
};

enum class RowErasing : uint8_t { none, colour, noise };
enum class RowMixing : uint8_t {
  none,
  mean,  // of the row and its partner, weighted
  box,   // a box becomes the partner's
};

// Shares of RowMixing::mean are whole numbers of this many parts, so that the bytes are exact.
inline constexpr int kShareBits = 15;

// The edits of one row. Trivially copyable: it is read by a GPU.
struct RowEdit {
  EditBox erased{};
  std::array<uint8_t, 3> colour{};  // of RowErasing::colour
  RowErasing erasing = RowErasing::none;
  PhiloxDraws noise{};  // of RowErasing::noise: value i of the box has the bits of draw i / 5
  EditBox taken{};      // of RowMixing::box
  int32_t share = 0;    // of RowMixing::mean: the row's own, 0 to 1 << kShareBits
  RowMixing mixing = RowMixing::none;

  constexpr bool none() const { return erasing == RowErasing::none && mixing == RowMixing::none; }
};

// The bytes of RowErasing::noise, by channel and 12 random bits.
inline constexpr int kNoiseBits = 12;
using NoiseBytes = std::array<std::array<uint8_t, 1 << kNoiseBits>, 3>;

// A kernel's arguments, by value.
struct RowEditArgs {
  uint8_t* images = nullptr;       // (rows, height, width, 3)
  const RowEdit* edits = nullptr;  // (rows)
  int64_t rows = 0;
  int height = 0, width = 0;
  const NoiseBytes* noise = nullptr;  // null: no row has any
};

class RowEditor {
 public:
  // `device` outlives it. `noise`: null if no row has RowErasing::noise; it is copied to the
  // device, which is waited for. Throws std::runtime_error if the device is a GPU whose plugin
  // cannot be opened.
  explicit RowEditor(Device& device, const NoiseBytes* noise = nullptr);
  RowEditor(const RowEditor&) = delete;
  RowEditor& operator=(const RowEditor&) = delete;

  // Queues the edits of a batch on `stream`, or nothing if no row has one. `batch` is the device
  // part of a batch with edits (BatchShape::edits), `edits` the same edits where the host can read
  // them, which it does before it returns. The editor outlives the work.
  void run(Stream& stream, const BatchLayout& layout, std::span<const RowEdit> edits,
           std::byte* batch) const;

  int64_t device_bytes() const;  // memory held on the device

 private:
  using Kernel = void (*)(Stream& stream, const RowEditArgs& args);
  Kernel kernel_;
  std::unique_ptr<Memory> noise_;  // or null
};

// Runs immediately, on the calling thread.
void edit_rows_on_host(const RowEditArgs& args);

}  // namespace stoker
