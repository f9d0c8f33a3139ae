#include "bench/suite/task_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <stdexcept>
#include <utility>

namespace stoker {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Units that are left by rounding alone, as a share of the task's.
constexpr double kRounding = 1e-12;

void check_tasks(const std::vector<SharedResource>& resources,
                 const std::vector<SimulatedTask>& tasks) {
  for (const SharedResource& resource : resources) {
    if (resource.per_second > 0) continue;
    throw std::invalid_argument(
        fmt::format("simulation: {} has {} per second", resource.name, resource.per_second));
  }
  for (size_t i = 0; i < tasks.size(); ++i) {
    const SimulatedTask& task = tasks[i];
    const auto good_use = [&](const ResourceUse& use) {
      return use.resource >= 0 && use.resource < static_cast<int>(resources.size()) &&
             use.per_unit > 0;
    };
    const bool ordered = std::all_of(task.after.begin(), task.after.end(), [&](int before) {
      return before >= 0 && before < static_cast<int>(i);
    });
    if (ordered && task.seconds >= 0 && task.units >= 0 &&
        std::isfinite(task.seconds + task.units) && (task.units == 0 || !task.uses.empty()) &&
        std::all_of(task.uses.begin(), task.uses.end(), good_use)) {
      continue;
    }
    throw std::invalid_argument(
        fmt::format("simulation: task {} waits for a later one, or its {} seconds, {} units or "
                    "uses make no sense",
                    i, task.seconds, task.units));
  }
}

class Simulation {
 public:
  Simulation(const std::vector<SharedResource>& resources, const std::vector<SimulatedTask>& tasks)
      : resources_(resources),
        tasks_(tasks),
        times_(tasks.size()),
        left_(tasks.size()),
        waits_(tasks.size()),
        successors_(tasks.size()) {
    for (size_t i = 0; i < tasks.size(); ++i) {
      left_[i] = tasks[i].units;
      waits_[i] = static_cast<int>(tasks[i].after.size());
      for (const int before : tasks[i].after) successors_[before].push_back(static_cast<int>(i));
    }
  }

  std::vector<TaskTimes> run() {
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (waits_[i] == 0) begin(static_cast<int>(i));
    }
    while (!asleep_.empty() || !working_.empty()) advance();
    return std::move(times_);
  }

 private:
  struct Worker {
    int task;
    double rate;  // units per second
  };

  void begin(int task) {
    times_[task].begin = now_;
    asleep_.emplace(now_ + tasks_[task].seconds, task);
  }

  void end(int task) {
    times_[task].end = now_;
    for (const int next : successors_[task]) {
      if (--waits_[next] == 0) begin(next);
    }
  }

  // Goes to the next moment at which a task wakes or has worked off its units.
  void advance() {
    double next = asleep_.empty() ? kNever : asleep_.top().first;
    for (const Worker& worker : working_) {
      next = std::min(next, now_ + left_[worker.task] / worker.rate);
    }
    if (!std::isfinite(next)) throw std::invalid_argument("simulation: a task takes forever");
    for (const Worker& worker : working_) left_[worker.task] -= worker.rate * (next - now_);
    now_ = next;
    std::vector<int> done;
    std::erase_if(working_, [&](const Worker& worker) {
      // The second condition is for what is left so close to the end that time cannot tell.
      const bool ended = left_[worker.task] <= kRounding * tasks_[worker.task].units ||
                         now_ + left_[worker.task] / worker.rate <= now_;
      if (ended) done.push_back(worker.task);
      return ended;
    });
    bool changed = !done.empty();
    for (const int task : done) end(task);
    while (!asleep_.empty() && asleep_.top().first <= now_) {
      const int task = asleep_.top().second;
      asleep_.pop();
      if (tasks_[task].units > 0) {
        working_.push_back({task, 0});
        changed = true;
      } else {
        end(task);
      }
    }
    if (changed) share();
  }

  // Raises the rates of all workers together; those whose resource is used up keep theirs.
  void share() {
    std::vector<double> free(resources_.size()), wanted(resources_.size(), 0);
    for (size_t r = 0; r < resources_.size(); ++r) free[r] = resources_[r].per_second;
    std::vector<Worker*> rising;
    for (Worker& worker : working_) {
      worker.rate = 0;
      rising.push_back(&worker);
      for (const ResourceUse& use : tasks_[worker.task].uses) wanted[use.resource] += use.per_unit;
    }
    double level = 0;
    while (!rising.empty()) {
      double step = kNever;
      size_t full = 0;
      for (size_t r = 0; r < resources_.size(); ++r) {
        if (wanted[r] > 0 && free[r] / wanted[r] < step) {
          step = free[r] / wanted[r];
          full = r;
        }
      }
      level += step;
      for (size_t r = 0; r < resources_.size(); ++r) free[r] -= step * wanted[r];
      std::erase_if(rising, [&](Worker* worker) {
        const auto& uses = tasks_[worker->task].uses;
        const bool stops = std::any_of(uses.begin(), uses.end(), [&](const ResourceUse& use) {
          return use.resource == static_cast<int>(full);
        });
        if (!stops) return false;
        worker->rate = level;
        for (const ResourceUse& use : uses) wanted[use.resource] -= use.per_unit;
        return true;
      });
      wanted[full] = 0;  // also of what rounding left
    }
  }

  const std::vector<SharedResource>& resources_;
  const std::vector<SimulatedTask>& tasks_;
  std::vector<TaskTimes> times_;
  std::vector<double> left_;  // units
  std::vector<int> waits_;    // for how many tasks
  std::vector<std::vector<int>> successors_;

  double now_ = 0;
  using Sleeper = std::pair<double, int>;  // when, task
  std::priority_queue<Sleeper, std::vector<Sleeper>, std::greater<>> asleep_;
  std::vector<Worker> working_;
};

}  // namespace

std::vector<TaskTimes> simulate(const std::vector<SharedResource>& resources,
                                const std::vector<SimulatedTask>& tasks) {
  check_tasks(resources, tasks);
  return Simulation(resources, tasks).run();
}

}  // namespace stoker
