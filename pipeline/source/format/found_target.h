// The numbers of one target of one sample, as a format found them. A value; a scan keeps one for
// each target and fills it again for each sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pipeline/target.h"

namespace stoker {

struct FoundTarget {
  // The column's type if this is the first sample and the user named no type: uint8 for
  // booleans and uint8, int64 for other integers, float32 for numbers with a fraction.
  TargetType type = TargetType::int64;
  std::vector<int64_t> shape{};  // empty: a single number
  // One of them is empty: the numbers, row-major.
  std::vector<int64_t> integers{};
  std::vector<double> reals{};
  int64_t offset = 0;  // in the blob, for messages

  size_t size() const { return integers.size() + reals.size(); }
  void clear() {
    shape.clear();
    integers.clear();
    reals.clear();
  }
  // Integers become reals when one of them is.
  void add(int64_t value) {
    if (reals.empty()) {
      integers.push_back(value);
    } else {
      reals.push_back(static_cast<double>(value));
    }
  }
  void add(double value) {
    reals.insert(reals.end(), integers.begin(), integers.end());
    integers.clear();
    reals.push_back(value);
  }
  // A list of one number is a single number in formats that do not tell them apart.
  void make_list() {
    if (size() != 1) shape = {static_cast<int64_t>(size())};
  }
};

}  // namespace stoker
