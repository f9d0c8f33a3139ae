// Names a process so that another one with its number, later, is not taken for it. Threads: any.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace stoker {

struct ProcessMark {
  pid_t pid = 0;
  uint64_t start = 0;  // clock ticks since the machine's start
  bool operator==(const ProcessMark&) const = default;
};

// Throws std::runtime_error if /proc cannot be read.
ProcessMark own_process_mark();
enum class Life : uint8_t {
  ended,    // also if nobody has waited for it yet
  stopped,  // by a signal, or by a debugger
  runs,
};
Life life_of(const ProcessMark& process);
// Returns a number of the PID namespace: process numbers of two namespaces mean different things.
std::string pid_namespace();

}  // namespace stoker
