// Ctrl-C, SIGTERM and SIGUSR1 (which mpirun passes on, and Slurm can send before a job's time is
// up) for a command that can stop in good order: the first one asks it to stop, the second ends the
// process at once. The one global of the program: a signal handler has no other way
// to its object. Owner: the command; one at a time. Threads: made and destroyed by one.
#pragma once

#include <string_view>

namespace stoker {

class Interrupt {
 public:
  // `ask` is called in the signal handler: only what is async-signal-safe. `context` outlives this.
  // `answer`: of static life, is shown on stderr when the first one comes.
  Interrupt(void (*ask)(void* context), void* context, std::string_view answer);
  ~Interrupt();  // signals do again what they did before
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  int signal() const;  // the first one that came; 0: none
};

}  // namespace stoker
