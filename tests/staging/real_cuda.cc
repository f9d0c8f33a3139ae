#include "staging/device_list.h"
#include "tests/staging/cuda_fixture.h"

namespace stoker::testing {

std::string prepare_cuda() { return query_cuda().problem; }

}  // namespace stoker::testing
