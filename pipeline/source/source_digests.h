// Digests of a data set's labels and targets, in the order of the samples. Owner: one caller.
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pipeline/target.h"

namespace stoker {

// Takes the labels (XXH3 of them as 32-bit numbers): the same for the same samples wherever they
// are stored.
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

// Takes the columns of the targets and all values: the same for the same targets in memory and in
// an index.
class TargetDigest {
 public:
  // `columns` stand beside those of another source, whose digest is `others`; 0: it has none.
  explicit TargetDigest(std::vector<TargetColumn> columns, uint64_t others = 0);
  ~TargetDigest();
  TargetDigest(const TargetDigest&) = delete;
  TargetDigest& operator=(const TargetDigest&) = delete;

  // Takes the next values of a column, in the order of the samples.
  void add(size_t column, std::span<const std::byte> values);
  // The same for one sample of a column that varies. `is_problem`: the bytes say why it has none.
  void add_piece(size_t column, std::span<const std::byte> values, bool is_problem = false);
  uint64_t value() const;  // `others` if there are no columns

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
