// Simulates tasks that wait for each other and share resources: the arithmetic below a prediction
// of a training step. Time is a number that begins at 0; no clock is read.
//
// A task begins when all tasks before it have ended. First its own seconds pass, which it shares
// with nobody; then its units are worked off. Tasks that use one resource at a time share it
// max-min fairly (Bertsekas and Gallager, Data Networks, 1992, section 6.5.2): all get the same
// units per second, and what one of them cannot use because of another resource is left to the
// others. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

namespace stoker {

struct SharedResource {
  std::string name;
  double per_second = 0;  // above 0
};

struct ResourceUse {
  int resource = 0;     // index
  double per_unit = 1;  // of the task; above 0
};

struct SimulatedTask {
  std::vector<int> after;  // indices of earlier tasks
  double seconds = 0;
  double units = 0;  // above 0 only with a use
  std::vector<ResourceUse> uses;
};

struct TaskTimes {
  double begin = 0, end = 0;  // seconds
};

// Returns the times of each task. Throws std::invalid_argument with the task's index for one that
// waits for itself or a later one, or with numbers that make no sense.
std::vector<TaskTimes> simulate(const std::vector<SharedResource>& resources,
                                const std::vector<SimulatedTask>& tasks);

}  // namespace stoker
