// The order that mixes several sources by shares.
#include <algorithm>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/order/order_parts.h"
#include "pipeline/order/share_split.h"
#include "pipeline/random/random_key.h"
#include "pipeline/sample_order.h"

namespace stoker {
namespace {

[[noreturn]] void fail_blend(const std::string& problem) {
  throw std::invalid_argument("blend order: " + problem);
}

// Returns the sum, or a number that is too large for an order.
int64_t sum_of(const std::vector<int64_t>& sizes) {
  constexpr int64_t kTooMany = int64_t{1} << 41;
  int64_t sum = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0) {
      fail_blend("source " + std::to_string(i) + " has " + std::to_string(sizes[i]) + " samples");
    }
    sum = std::min(sum + std::min(sizes[i], kTooMany), kTooMany);
  }
  return sum;
}

void check_piece(const BlendOptions& options, size_t at) {
  const BlendPiece& piece = options.schedule[at];
  const int64_t before = at == 0 ? -1 : options.schedule[at - 1].first_position;
  const std::string name =
      "piece " + std::to_string(at) + " of " + std::to_string(options.schedule.size());
  if (at == 0 ? piece.first_position != 0 : piece.first_position <= before) {
    fail_blend(name + " begins at position " + std::to_string(piece.first_position) + ", must " +
               (at == 0 ? "begin at 0" : "be after " + std::to_string(before)));
  }
  if (piece.weights.size() != options.sizes.size()) {
    fail_blend(name + " has " + std::to_string(piece.weights.size()) + " weights for " +
               std::to_string(options.sizes.size()) + " sources");
  }
  check_weights("blend order: " + name, piece.weights);
  for (size_t i = 0; i < options.sizes.size(); ++i) {
    if (piece.weights[i] > 0 && options.sizes[i] == 0) {
      fail_blend(name + ": source " + std::to_string(i) + " has weight " +
                 std::to_string(piece.weights[i]) + ", but no samples");
    }
  }
}

class Blend final : public SampleOrder {
 public:
  explicit Blend(const BlendOptions& options)
      : SampleOrder("blend", sum_of(options.sizes), options.length), sizes_(options.sizes) {
    if (options.schedule.empty()) {
      fail_blend("the schedule has no pieces, so no source has a weight");
    }
    begins_.push_back(0);
    for (const int64_t size : sizes_) begins_.push_back(begins_.back() + size);
    for (size_t i = 0; i < options.schedule.size(); ++i) {
      check_piece(options, i);
      add(options.schedule[i]);
    }
  }

  OrderedSample at(const EpochKey& epoch, int64_t position) const override {
    const uint64_t first = static_cast<uint64_t>(epoch.epoch) * static_cast<uint64_t>(length());
    const uint64_t place = first + static_cast<uint64_t>(position);
    const Piece& piece = piece_at(place);
    const ShareSplit::Position found = piece.split.at(place - piece.first);
    const auto source = static_cast<size_t>(found.part);
    const Passes passes(RandomKey(epoch.seed, 0, found.part).bits(kPartSeed), sizes_[source]);
    const PassMember member =
        passes.at(piece.before[source] + found.index, count(found.part, first));
    return {begins_[source] + member.member, member.repeat_index};
  }

  std::string describe() const override {
    std::vector<uint64_t> table(sizes_.begin(), sizes_.end());
    for (const Piece& piece : pieces_) {
      table.push_back(piece.first);
      table.insert(table.end(), piece.split.shares().begin(), piece.split.shares().end());
    }
    return "blend of " + std::to_string(sizes_.size()) + " sources in " +
           std::to_string(pieces_.size()) + " pieces, length " + std::to_string(length()) +
           ", shares " + hex64(digest128(table).low);
  }

 private:
  struct Piece {
    uint64_t first;
    ShareSplit split;
    std::vector<uint64_t> before;  // how many samples each source gave before `first`
  };

  void add(const BlendPiece& piece) {
    const auto first = static_cast<uint64_t>(piece.first_position);
    std::vector<uint64_t> before(sizes_.size());
    for (size_t i = 0; i < sizes_.size() && !pieces_.empty(); ++i) {
      before[i] = count(static_cast<int64_t>(i), first);
    }
    pieces_.push_back({first, ShareSplit(piece.weights), std::move(before)});
  }

  const Piece& piece_at(uint64_t position) const {
    const auto after =
        std::upper_bound(pieces_.begin(), pieces_.end(), position,
                         [](uint64_t wanted, const Piece& piece) { return wanted < piece.first; });
    return *(after - 1);
  }

  // Returns how many of the first `positions` are of the source.
  uint64_t count(int64_t source, uint64_t positions) const {
    const Piece& piece = piece_at(positions);
    return piece.before[static_cast<size_t>(source)] +
           piece.split.count(source, positions - piece.first);
  }

  const std::vector<int64_t> sizes_;
  std::vector<int64_t> begins_;  // the first id of each source, and the end of the last
  std::vector<Piece> pieces_;
};

}  // namespace

SharedOrder blend_order(const BlendOptions& options) { return std::make_shared<Blend>(options); }

}  // namespace stoker
