// Runs something where this process may use one core only, whatever the machine has.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace stoker {

// Calls `work` on a thread that is bound to one core, and returns after it. The threads that `work`
// starts inherit the binding; the caller's own is untouched.
template <typename Work>
void on_one_core(Work&& work) {
  std::thread([&] {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    int core = 0;
    while (!CPU_ISSET(core, &all)) ++core;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    work();
  }).join();
}

}  // namespace stoker
