// Tests of a CUDA device run twice: on the fake driver (cuda_fake_test) and on a real GPU if there
// is one (cuda_device_test). Each program links one implementation of this.
#pragma once

#include <string>

namespace stoker::testing {

// Starts with a new device where there is a fake; returns why there is no GPU to test on, or "" if
// there is one.
std::string prepare_cuda();

}  // namespace stoker::testing
