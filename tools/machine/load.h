// Linux's counters of this process, its threads and the machine: who used the cores, who waited for
// one, and what came from a disk. Values only grow; the difference of two readings is what happened
// between them. What a kernel does not report is -1 ("unknown").
#pragma once

#include <time.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stoker {

struct ThreadLoad {
  std::string name;           // the Tracer's name
  int64_t cpu_ns = -1;        // it ran
  int64_t run_delay_ns = -1;  // it was ready to run and waited for a core
};

struct MachineLoad {
  int64_t time_ns = 0;           // steady clock
  int64_t own_cpu_ns = -1;       // of this process, all threads, user and system
  int64_t busy_ns = -1;          // of the cores that this process may use, for any process
  int64_t stolen_ns = -1;        // of those: taken by the hypervisor for other machines
  int64_t read_bytes = -1;       // by this process, from anywhere
  int64_t disk_read_bytes = -1;  // of those, from storage: the page cache did not have them
  int64_t resident_bytes = -1;
  std::vector<ThreadLoad> threads;
};

struct NamedThread {
  std::string name;
  int64_t thread = 0;  // Linux's thread id
};

int64_t resident_bytes();       // of this process
int64_t peak_resident_bytes();  // the most that it has had; -1: unknown

MachineLoad read_machine_load(const std::vector<NamedThread>& threads);
// Returns the difference of two readings; unknown where one of them is. Threads are matched by
// name.
MachineLoad operator-(const MachineLoad& after, const MachineLoad& before);

// Clocks. CPU time is the one to measure with on a machine that others use, too. Any thread.
inline double clock_seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

inline double process_cpu_seconds() { return clock_seconds(CLOCK_PROCESS_CPUTIME_ID); }
inline double thread_cpu_seconds() { return clock_seconds(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace stoker
