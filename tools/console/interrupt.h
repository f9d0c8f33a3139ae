// Handles Ctrl-C, SIGTERM and SIGUSR1 (which mpirun passes on, and which Slurm can send before a
// job's time is up) for a command that can stop cleanly: the first signal asks it to stop, the
// second one ends the process at once. Uses a global, because a signal handler has no other way to
// its object. Owner: the command; one at a time. Threads: constructed and destroyed by one.
#pragma once

#include <string_view>

namespace stoker {

class Interrupt {
 public:
  // `ask` is called in the signal handler and may use only what is async-signal-safe. `context`
  // outlives this. `answer` has static storage; it is written to stderr on the first signal.
  Interrupt(void (*ask)(void* context), void* context, std::string_view answer);
  ~Interrupt();  // restores the previous handlers
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  int signal() const;  // the first one that came; 0: none
};

}  // namespace stoker
