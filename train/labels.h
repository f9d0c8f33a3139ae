// The labels that models learn from a source: one label each, or, where the samples have a target
// besides it, which of several classes they show: any number of them. Such a target is a vector of
// float32, a number from 0 to 1 for each class (multi-hot), and the label is not used. Pure; any
// thread.
#pragma once

#include <string>
#include <vector>

#include "pipeline/source.h"

namespace stoker {

struct Labels {
  std::string target;                    // name of the target; "": the label
  std::vector<std::string> class_names;  // of a target: its name with an index, "tags[0]"
  bool operator==(const Labels&) const = default;
};

// Throws std::invalid_argument for targets that no model learns.
Labels labels_of(const Source& source);

}  // namespace stoker
