// libcuda.so.1 of tests that have cuDNN compile kernels where there is no driver.
#pragma once

extern "C" int idle_cuda_driver_loads();  // how many compiled kernels were loaded so far
