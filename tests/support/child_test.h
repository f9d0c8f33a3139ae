// A test of this program in a process of its own, which another test may kill.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

namespace stoker {

// Starts the tests that fit `filter`, as gtest has them, with more variables in the environment.
// They write nothing to stdout.
inline pid_t start_child_test(const std::string& filter,
                              const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  std::vector<char*> entries;
  for (std::string& entry : environment) entries.push_back(entry.data());
  entries.push_back(nullptr);
  std::string program = "/proc/self/exe", argument = "--gtest_filter=" + filter;
  char* arguments[] = {program.data(), argument.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  EXPECT_EQ(posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, entries.data()), 0);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

// Returns the child's status, as waitpid() gives it.
inline int wait_for_child(pid_t child) {
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

}  // namespace stoker
