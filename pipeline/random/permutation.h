// A shuffled order without a table: a keyed bijection of [0, size), and its inverse, each O(1). A
// key makes one order; keys that differ make orders that are independent for practical purposes.
// Algorithm: a Feistel network (Luby and Rackoff, "How to construct pseudorandom permutations from
// pseudorandom functions", 1988) on the fewest bits that hold every position, whose cycle is
// followed until it is in range (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
// A value; any threads. REQUIRES: 1 <= size <= 2^62, and arguments inside [0, size).
#pragma once

#include <cstdint>

namespace stoker {

struct PermutationKey {
  uint64_t add = 0;
  uint64_t multiply = 1;  // odd
};

class Permutation {
 public:
  Permutation(int64_t size, const PermutationKey& key);
  int64_t at(int64_t position) const;
  // The inverse: position_of(at(p)) == p.
  int64_t position_of(int64_t value) const;

 private:
  int64_t size_;
  int bits_;
  PermutationKey key_;
};

}  // namespace stoker
