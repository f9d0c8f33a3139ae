// "Processes" that are threads of the test, and the ProcessGroup between them. Messages are late,
// as over a network.
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

  // Runs `body` as every process concurrently. An exception in a body aborts the group, like a
  // process that ends; returns the messages by rank ("": none). Without messages the group is like
  // NCCL's: a gather completes only when its result is requested.
  std::vector<std::string> run(const std::function<void(ProcessGroup&)>& body,
                               bool messages = true);

 private:
  struct Shared;
  class Group;
  class WithoutMessages;
  std::unique_ptr<Shared> shared_;
};

}  // namespace stoker
