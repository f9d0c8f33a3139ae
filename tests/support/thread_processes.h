// "Processes" that are threads of the test: the ProcessGroup between them. Messages arrive late and
// in pieces of their own time, as over a network.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "train/collective/process/process_group.h"

namespace stoker {

class ThreadProcesses {
 public:
  explicit ThreadProcesses(int size);
  ~ThreadProcesses();
  ThreadProcesses(const ThreadProcesses&) = delete;
  ThreadProcesses& operator=(const ThreadProcesses&) = delete;

  // Runs `body` as every process at once. What a body throws aborts the group as a process that
  // ends does; returns what each threw, by rank ("": nothing).
  // Without messages they are as NCCL's: what is gathered is on its way until it is asked for.
  std::vector<std::string> run(const std::function<void(ProcessGroup&)>& body,
                               bool messages = true);

 private:
  struct Shared;
  class Group;
  class WithoutMessages;
  std::unique_ptr<Shared> shared_;
};

}  // namespace stoker
