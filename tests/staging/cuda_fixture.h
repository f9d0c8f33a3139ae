// Tests of a CUDA device run twice: on the fake driver (cuda_fake_test) and on whatever GPU is
// there (cuda_device_test). Each program says which by one of these.
#pragma once

#include <string>

namespace stoker::testing {

// Makes a fresh start; returns why there is no GPU to test on, "" if there is one.
std::string prepare_cuda();

}  // namespace stoker::testing
