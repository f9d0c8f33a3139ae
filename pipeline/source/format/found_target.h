// The values of one target of one sample, as a format found them. A value; a scan keeps one for
// each target and fills it again for each sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
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
  // In place of numbers, if the target is text: its texts, each ended by a NUL.
  std::string texts{};
  // Why the sample has no values, if they vary: it is a bad sample. "": nothing so far.
  std::string problem{};
  int64_t offset = 0;  // in the blob, for messages

  size_t size() const { return integers.size() + reals.size(); }
  void clear() {
    shape.clear();
    integers.clear();
    reals.clear();
    texts.clear();
    problem.clear();
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
  void add_text(std::string_view text) {
    if (text.find('\0') != std::string_view::npos) problem = "has a text with a NUL byte";
    texts.append(text).push_back('\0');
  }
  // A list of one number is a single number in formats that do not tell them apart.
  void make_list() {
    if (size() != 1) shape = {static_cast<int64_t>(size())};
  }
};

}  // namespace stoker
