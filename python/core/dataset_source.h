// The samples of an object of Python (stoker.dataset()). Owner: whoever holds it; it keeps the
// reader, and its end, which may wait, releases Python's lock. Threads: as every Source.
//
// A sample's name is "dataset/17". Without labels in the options the labels come with the samples:
// until a sample has been read, its label is unknown (unknown_label.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python/core/dataset_reader.h"
#include "python/core/shared_source.h"

namespace stoker::python {

struct DatasetOptions {
  int64_t samples = 0;
  std::optional<std::vector<int32_t>> labels{};  // one for each sample
  std::vector<std::string> class_names{};
  std::string root{};  // paths are relative to it
  // The reader gives the values of each, one after the other, in front of the bytes or the path.
  std::vector<TargetColumn> targets{};
};

// Throws std::invalid_argument with the numbers; std::runtime_error if the root cannot be opened.
SharedSource make_dataset_source(std::shared_ptr<DatasetReader> reader, DatasetOptions options);

}  // namespace stoker::python
