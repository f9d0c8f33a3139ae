// Walks through the members of a group (a class, a source) again and again: every pass has each
// member once, in a shuffled order of its own. A value; any threads.
#pragma once

#include <cstdint>

namespace stoker {

struct PassMember {
  int64_t member = 0;         // in [0, members)
  uint64_t repeat_index = 0;  // how often it has come since the mark
};

class Passes {
 public:
  // `seed` belongs to this group alone. REQUIRES: members >= 1.
  Passes(uint64_t seed, int64_t members) : seed_(seed), members_(members) {}
  // Returns the member at place `index` of the endless walk. `mark` <= index: the place from which
  // repeat indexes are counted, that of the epoch's first position.
  PassMember at(uint64_t index, uint64_t mark) const;

 private:
  uint64_t seed_;
  int64_t members_;
};

}  // namespace stoker
