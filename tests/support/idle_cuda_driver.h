// libcuda.so.1 for tests in which cuDNN compiles kernels without a driver.
#pragma once

extern "C" int idle_cuda_driver_loads();  // how many compiled kernels were loaded so far
