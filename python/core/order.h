// An order of samples as Python holds it: by value, so that a Loader's threads keep the C++ order
// and no Python object. And orders that are made for a source. Threads: any.
#pragma once

#include <vector>

#include "pipeline/sample_order.h"
#include "pipeline/source.h"

namespace stoker::python {

struct BoundOrder {
  SharedOrder order;
};

// Every class of the source equally often; see class_balanced_order(), also for what it throws.
BoundOrder balance_classes(const Source& source, int64_t length);

// The samples of a list in its order, the same in every epoch; a sample that is listed again gets
// other crops. Throws std::invalid_argument with the numbers: an empty list, an id that is not in
// [0, samples).
BoundOrder listed_order(int64_t samples, const std::vector<SampleId>& ids);

}  // namespace stoker::python
