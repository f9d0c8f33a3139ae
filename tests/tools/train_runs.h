// Small training runs of the real program, for tests: one data set, folders for results, and their
// contents afterwards.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/tools/cli_harness.h"

namespace stoker {

class TrainRuns : public ::testing::Test {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite() { data_.reset(); }

  const std::string& data() const { return data_->path(); }
  std::string run_folder(const std::string& name) const { return out_.path() + "/" + name; }
  // A tiny run: 40 samples, 10 steps per epoch, evaluated only at the end.
  std::vector<std::string> command(const std::string& name, int epochs) const;
  static std::vector<std::string> with(std::vector<std::string> words,
                                       const std::vector<std::string>& more);
  // The file "model" or "state" of a run's checkpoint; "" if there is none.
  std::string weights(const std::string& name, int step, const std::string& file = "model") const;

  static inline std::unique_ptr<TempFolder> data_;
  TempFolder out_;
};

// Returns how many complete rows of this kind ("step", "epoch") metrics.jsonl has.
int count_metrics(const std::string& run_folder, const std::string& kind);

}  // namespace stoker
