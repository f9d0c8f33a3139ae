#include <algorithm>
#include <stdexcept>

#include "pipeline/order/order_parts.h"
#include "pipeline/random/random_key.h"
#include "pipeline/sample_order.h"
#include "pipeline/step_shapes.h"

namespace stoker {
namespace {

[[noreturn]] void refuse_schedule(const std::string& problem) {
  throw std::invalid_argument("shapes of steps: " + problem);
}

}  // namespace

ShapeSchedule::ShapeSchedule(std::vector<ShapePiece> pieces, int64_t hold) : hold_(hold) {
  if (hold < 1) refuse_schedule("hold is " + std::to_string(hold) + ", must be at least 1 step");
  if (pieces.empty()) refuse_schedule("there are no sizes");
  int64_t before = -1;
  for (const ShapePiece& piece : pieces) {
    if (piece.sizes.empty() ||
        (before < 0 ? piece.first_epoch != 0 : piece.first_epoch <= before)) {
      refuse_schedule("the sizes from epoch " + std::to_string(piece.first_epoch) + " on are " +
                      std::to_string(piece.sizes.size()) +
                      "; the first ones begin at epoch 0, others later than those before, and "
                      "each at least one");
    }
    before = piece.first_epoch;
    Piece& made = pieces_.emplace_back(Piece{piece.first_epoch, {}});
    for (const Size size : piece.sizes) {
      const auto known = std::find(sizes_.begin(), sizes_.end(), size);
      made.shapes.push_back(static_cast<int>(known - sizes_.begin()));
      if (known == sizes_.end()) sizes_.push_back(size);
    }
  }
}

int ShapeSchedule::shape(const EpochKey& epoch, int64_t step_in_epoch) const {
  const auto after = std::upper_bound(
      pieces_.begin(), pieces_.end(), epoch.epoch,
      [](int64_t number, const Piece& piece) { return number < piece.first_epoch; });
  const std::vector<int>& shapes = (after - 1)->shapes;
  if (shapes.size() == 1) return shapes[0];
  const RandomKey key(epoch.seed, epoch.epoch, step_in_epoch / hold_);
  return shapes[static_cast<size_t>(key.below(kStepShape, static_cast<int64_t>(shapes.size())))];
}

std::string ShapeSchedule::describe() const {
  std::string text = "sizes";
  for (const Piece& piece : pieces_) {
    text += " from epoch " + std::to_string(piece.first_epoch) + ":";
    for (const int shape : piece.shapes) {
      const Size size = sizes_[static_cast<size_t>(shape)];
      text.append(" ").append(std::to_string(size.width)).append("x");
      text.append(std::to_string(size.height));
    }
  }
  return text + (hold_ > 1 ? " for " + std::to_string(hold_) + " steps" : "");
}

}  // namespace stoker
