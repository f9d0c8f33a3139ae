#include "tests/tools/cli_harness.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace stoker {
namespace {

void redirect(int target, const std::string& path, int flags) {
  const int file = open(path.c_str(), flags, 0600);
  if (file < 0 || dup2(file, target) < 0) _exit(126);
  close(file);
}

}  // namespace

RunningProgram::RunningProgram(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const std::string out = folder_.path() + "/out", err = folder_.path() + "/err";
  child_ = fork();
  if (child_ < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (child_ == 0) {
    redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
    redirect(STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_TRUNC);
    redirect(STDERR_FILENO, err, O_WRONLY | O_CREAT | O_TRUNC);
    execvp(argv[0], argv.data());
    _exit(127);
  }
}

RunningProgram::~RunningProgram() {
  if (reaped_) return;
  kill(child_, SIGKILL);
  waitpid(child_, &status_, 0);
}

bool RunningProgram::running() {
  if (!reaped_ && waitpid(child_, &status_, WNOHANG) == child_) reaped_ = true;
  return !reaped_;
}

bool RunningProgram::wait_until(const std::function<bool()>& condition, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    if (!running()) return condition();
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return false;
}

bool RunningProgram::wait_for_file(const std::string& file, size_t bytes, double seconds) {
  return wait_until(
      [&] {
        std::error_code error;
        const auto size = std::filesystem::file_size(file, error);
        return !error && size >= bytes;
      },
      seconds);
}

std::string RunningProgram::err() const { return read_text(folder_.path() + "/err"); }

void RunningProgram::send(int signal) {
  if (running()) kill(child_, signal);
}

ProgramResult RunningProgram::wait() {
  if (!reaped_) waitpid(child_, &status_, 0);
  reaped_ = true;
  ProgramResult result;
  if (WIFEXITED(status_)) result.exit_code = WEXITSTATUS(status_);
  if (WIFSIGNALED(status_)) result.signal = WTERMSIG(status_);
  result.out = read_text(folder_.path() + "/out");
  result.err = read_text(folder_.path() + "/err");
  return result;
}

ProgramResult run_program(const std::vector<std::string>& command) {
  return RunningProgram(command).wait();
}

ProgramResult run_stoker(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), STOKER_PROGRAM);
  return run_program(arguments);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void make_small_shapes(const std::string& folder) {
  const ProgramResult result = run_stoker(
      {"make-shapes", "--out", folder, "--count", "40", "--test-count", "20", "--size", "48"});
  if (result.exit_code != 0) throw std::runtime_error("make-shapes: " + result.err);
}

int count_lines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace stoker
