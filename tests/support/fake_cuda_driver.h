// The fake runtime's interface to the fake driver, which are two libraries, like the real ones.
#pragma once

extern "C" {
int fake_cuda_driver_contexts();          // how often one was retained
int fake_cuda_driver_device();            // current on the calling thread; -1: none
void fake_cuda_driver_refuse(int error);  // what cuCtxPushCurrent returns from now on; 0: success
}
