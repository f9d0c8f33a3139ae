// A constant list of sample numbers, in 4 bytes each where all are below 2^32, else in 8. A value;
// any threads may read it.
#pragma once

#include <cstdint>
#include <vector>

#include "staging/batch_layout.h"

namespace stoker {

class IdList {
 public:
  IdList() = default;
  // REQUIRES: no negative number.
  explicit IdList(const std::vector<SampleId>& ids);
  int64_t size() const;
  SampleId operator[](int64_t at) const {
    const auto index = static_cast<size_t>(at);
    return wide_.empty() ? narrow_[index] : wide_[index];
  }
  uint64_t digest() const;  // of the numbers in their order; the same for both widths

 private:
  std::vector<uint32_t> narrow_;
  std::vector<SampleId> wide_;  // instead of `narrow_`
};

}  // namespace stoker
