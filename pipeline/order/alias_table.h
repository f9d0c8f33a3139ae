// Draws numbers by weight in O(1). Algorithm: the alias method, as in Vose, "A linear algorithm for
// generating random numbers with a given distribution", IEEE Transactions on Software Engineering
// 17 (1991): n columns of equal probability, each shared by at most two numbers. A value, constant
// after construction; any threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/order/id_list.h"

namespace stoker {

class AliasTable {
 public:
  // REQUIRES: weights as check_weights() wants them.
  explicit AliasTable(std::span<const double> weights);
  int64_t columns() const { return aliases_.size(); }
  // `column` is uniform in [0, columns()), `side` in all of its range; both together pick one
  // number.
  int64_t pick(int64_t column, uint64_t side) const {
    return side < own_sides_[static_cast<size_t>(column)] ? column : aliases_[column];
  }

 private:
  std::vector<uint64_t> own_sides_;
  IdList aliases_;
};

}  // namespace stoker
