// Another process that is killed at one of its calls to the system, each of which is an event that
// can be counted: with all numbers one after the other, a process dies at every moment at which
// others could see a difference.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace stoker {

// Ends a process that was forked in a test: the copy must not go on with the tests.
[[noreturn]] inline void end_process(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    _exit(1);
  }
  _exit(0);
}

enum class Stopped { killed, ended, impossible };

// Does `work` in a copy of this process, which has one thread, and kills it with SIGKILL before or
// after a call: when it has begun or ended one `stop` times. `impossible`: nobody may watch
// processes here.
inline Stopped stop_process(int stop, const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(99);
    raise(SIGSTOP);
    end_process(work);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status)) return Stopped::impossible;
  for (int calls = 0; calls < stop; ++calls) {
    EXPECT_EQ(ptrace(PTRACE_SYSCALL, child, nullptr, nullptr), 0);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    if (WIFSTOPPED(status)) continue;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    return Stopped::ended;
  }
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  return Stopped::killed;
}

}  // namespace stoker
