// The digest of a data set's labels, in the order of the samples (XXH3 of them as 32-bit numbers):
// the same for the same samples wherever they are stored. Owner: one caller. Threads: one at a
// time.
#pragma once

#include <cstdint>
#include <memory>

namespace stoker {

class LabelDigest {
 public:
  LabelDigest();
  ~LabelDigest();
  LabelDigest(const LabelDigest&) = delete;
  LabelDigest& operator=(const LabelDigest&) = delete;

  void add(int32_t label, int64_t count = 1);
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
