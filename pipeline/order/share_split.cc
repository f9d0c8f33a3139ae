#include "pipeline/order/share_split.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <queue>

namespace stoker {
namespace {

__extension__ using Wide = unsigned __int128;

// Multiplies by a power of two, which is exact, so that the sum is below 2^60.
std::vector<uint64_t> whole_numbers(std::span<const double> weights) {
  int exponent = 0;
  std::frexp(*std::max_element(weights.begin(), weights.end()), &exponent);
  const int bits = 59 - std::bit_width(weights.size());
  std::vector<uint64_t> shares;
  for (const double weight : weights) {
    shares.push_back(static_cast<uint64_t>(std::llrint(std::ldexp(weight, bits - exponent))));
  }
  return shares;
}

// round(positions * left_share / share), and whether the next position is the left part's, too.
struct LeftCount {
  LeftCount(uint64_t positions, uint64_t left_share, uint64_t share) {
    const Wide twice = static_cast<Wide>(positions) * left_share * 2 + share;
    const Wide divisor = static_cast<Wide>(share) * 2;
    count = static_cast<uint64_t>(twice / divisor);
    takes_next = twice % divisor + static_cast<Wide>(left_share) * 2 >= divisor;
  }
  uint64_t count;
  bool takes_next;
};

}  // namespace

ShareSplit::ShareSplit(std::span<const double> weights) : shares_(whole_numbers(weights)) {
  make_tree();
  note_paths();
}

void ShareSplit::make_tree() {
  using Entry = std::pair<uint64_t, int64_t>;  // share, child
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  for (size_t part = 0; part < shares_.size(); ++part) {
    if (shares_[part] > 0) open.push({shares_[part], ~static_cast<int64_t>(part)});
  }
  while (open.size() > 1) {
    const Entry right = open.top();
    open.pop();
    const Entry left = open.top();
    open.pop();
    nodes_.push_back({left.first, left.first + right.first, left.second, right.second});
    open.push({left.first + right.first, static_cast<int64_t>(nodes_.size()) - 1});
  }
  root_ = open.top().second;
}

void ShareSplit::note_paths() {
  paths_.resize(shares_.size());
  std::vector<std::vector<Turn>> to_node(nodes_.size());
  for (size_t i = nodes_.size(); i-- > 0;) {
    for (const bool left : {true, false}) {
      const int64_t child = left ? nodes_[i].left : nodes_[i].right;
      auto& path =
          child >= 0 ? to_node[static_cast<size_t>(child)] : paths_[static_cast<size_t>(~child)];
      path = to_node[i];
      path.push_back({i, left});
    }
  }
}

ShareSplit::Position ShareSplit::at(uint64_t position) const {
  int64_t child = root_;
  while (child >= 0) {
    const Node& node = nodes_[static_cast<size_t>(child)];
    const LeftCount left(position, node.left_share, node.share);
    child = left.takes_next ? node.left : node.right;
    position = left.takes_next ? left.count : position - left.count;
  }
  return {~child, position};
}

uint64_t ShareSplit::count(int64_t part, uint64_t positions) const {
  if (shares_[static_cast<size_t>(part)] == 0) return 0;
  for (const Turn& turn : paths_[static_cast<size_t>(part)]) {
    const Node& node = nodes_[turn.node];
    const LeftCount left(positions, node.left_share, node.share);
    positions = turn.left ? left.count : positions - left.count;
  }
  return positions;
}

}  // namespace stoker
