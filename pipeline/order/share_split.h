// Deals positions 0, 1, 2, ... to parts by fixed shares, as evenly as whole numbers allow, in
// closed form. A node of a binary tree splits its positions in two: of the first n, the left part
// gets round(n * its share), so neither part is ever further than 1/2 from its share (Bresenham's
// line, 1965). The tree is Huffman's, which puts large shares near the root. Shares are ratios of
// whole numbers below 2^60, so nothing drifts. A value, constant after construction; any threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker {

class ShareSplit {
 public:
  // REQUIRES: weights as check_weights() wants them. Weights that fit in 53 bits and a few octaves
  // are kept exactly; one below 2^-60 of the sum becomes 0.
  explicit ShareSplit(std::span<const double> weights);

  struct Position {
    int64_t part = 0;
    uint64_t index = 0;  // how many positions the part got before this one
  };
  Position at(uint64_t position) const;
  // Returns how many of the first `positions` the part gets.
  uint64_t count(int64_t part, uint64_t positions) const;
  // The whole numbers that the shares are the ratios of.
  const std::vector<uint64_t>& shares() const { return shares_; }

 private:
  // A child: the index of a node, or ~part.
  struct Node {
    uint64_t left_share = 0, share = 0;
    int64_t left = 0, right = 0;
  };
  struct Turn {
    size_t node;
    bool left;
  };
  void make_tree();
  void note_paths();

  std::vector<uint64_t> shares_;
  std::vector<Node> nodes_;               // the root is the last one; children come before parents
  int64_t root_ = 0;                      // a child, as in a node
  std::vector<std::vector<Turn>> paths_;  // from the root to each part; at most 87 turns
};

}  // namespace stoker
