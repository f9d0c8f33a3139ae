// The data of a run of `stoker train`, from what its config.json says of them. Threads: any.
// Errors: std::runtime_error with the path of a file that is there and cannot be read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "tools/option/sample_choice.h"

namespace stoker {

struct RunSamples {
  DataOptions data;
  SampleChoice choice;  // neither it nor `data` names data: config.json does not say where they are
  int64_t limit = 0;    // TrainOptions::limit_train
  std::string subset;   // ChosenSamples::subset
  std::string order;    // SampleOrder::describe(); "": every sample once, shuffled
};
RunSamples read_run_samples(const std::filesystem::path& run);

struct NamedSample {
  std::string name;     // as Source::name(); "": it cannot be told
  std::string problem;  // why not
};
// Names the sample in which two receipts differ, after opening the data of the first run again.
// `a` and `b` are the runs' folders or the receipt.json in them. There is no name if the data are
// not the same any more, or if the runs were fed from different ones. Does not throw.
NamedSample name_sample(const std::filesystem::path& a, const std::filesystem::path& b,
                        int64_t sample);

}  // namespace stoker
