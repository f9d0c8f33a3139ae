// Runs the `stoker` program as a user would, for tests: arguments in; exit code, stdout and stderr
// out. Threads: one at a time. Throws std::runtime_error if the program cannot be started.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace stoker {

struct ProgramResult {
  int exit_code = -1;  // -1: a signal ended it
  int signal = 0;
  std::string out, err;
};

// A `stoker` (or another program) that runs concurrently with the test.
class RunningProgram {
 public:
  explicit RunningProgram(const std::vector<std::string>& command);
  ~RunningProgram();  // kills it if it still runs
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  // Waits until `file` has at least `bytes` bytes; returns false if the program ended or time ran
  // out.
  bool wait_for_file(const std::string& file, size_t bytes, double seconds);
  // The same for any other condition; checks it about every half millisecond.
  bool wait_until(const std::function<bool()>& condition, double seconds);
  pid_t pid() const { return child_; }
  std::string err() const;  // so far
  void send(int signal);
  ProgramResult wait();

 private:
  bool running();

  TempFolder folder_;
  pid_t child_ = -1;
  int status_ = 0;
  bool reaped_ = false;
};

ProgramResult run_program(const std::vector<std::string>& command);
ProgramResult run_stoker(std::vector<std::string> arguments);  // without the program's name

std::string read_text(const std::string& path);  // "" if there is no such file
// Makes the data set that most tests use: 40 training and 20 test images of 48 x 48, ten classes.
void make_small_shapes(const std::string& folder);

int count_lines(const std::string& text);

}  // namespace stoker
