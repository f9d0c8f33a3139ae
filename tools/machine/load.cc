#include "tools/machine/load.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "staging/stage_stats.h"

namespace stoker {
namespace {

cpu_set_t own_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  return cores;
}

// Parses "cpu0 user nice system idle iowait irq softirq steal ...", in ticks.
void read_cores(MachineLoad& load) {
  const cpu_set_t own = own_cores();
  const int64_t tick_ns = int64_t{1'000'000'000} / sysconf(_SC_CLK_TCK);
  std::ifstream file("/proc/stat");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("cpu", 0) != 0 || line.size() < 4 || line[3] == ' ') continue;
    const int core = std::stoi(line.substr(3));
    if (core >= CPU_SETSIZE || !CPU_ISSET(core, &own)) continue;
    std::istringstream fields(line.substr(line.find(' ')));
    int64_t user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, steal = 0;
    fields >> user >> nice >> system >> idle >> wait >> irq >> soft >> steal;
    load.busy_ns =
        std::max<int64_t>(load.busy_ns, 0) + (user + nice + system + irq + soft + steal) * tick_ns;
    load.stolen_ns = std::max<int64_t>(load.stolen_ns, 0) + steal * tick_ns;
  }
}

void read_own(MachineLoad& load) {
  timespec cpu{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  load.own_cpu_ns = int64_t{1'000'000'000} * cpu.tv_sec + cpu.tv_nsec;
  std::ifstream io("/proc/self/io");
  std::string name;
  int64_t value = 0;
  while (io >> name >> value) {
    if (name == "rchar:") load.read_bytes = value;
    if (name == "read_bytes:") load.disk_read_bytes = value;
  }
  load.resident_bytes = resident_bytes();
}

ThreadLoad read_thread(const NamedThread& thread) {
  ThreadLoad load{.name = thread.name};
  std::ifstream file("/proc/self/task/" + std::to_string(thread.thread) + "/schedstat");
  if (!(file >> load.cpu_ns >> load.run_delay_ns)) load.cpu_ns = load.run_delay_ns = -1;
  return load;
}

int64_t minus(int64_t after, int64_t before) {
  return after < 0 || before < 0 ? -1 : after - before;
}

}  // namespace

int64_t resident_bytes() {
  std::ifstream memory("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  return memory >> pages >> resident ? resident * sysconf(_SC_PAGESIZE) : -1;
}

int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  std::string key, rest;
  for (int64_t kib = 0; status >> key; std::getline(status, rest)) {
    if (key == "VmHWM:" && status >> kib) return kib << 10;
  }
  return -1;
}

MachineLoad read_machine_load(const std::vector<NamedThread>& threads) {
  MachineLoad load;
  load.time_ns = steady_now_ns();
  read_own(load);
  read_cores(load);
  for (const NamedThread& thread : threads) load.threads.push_back(read_thread(thread));
  return load;
}

MachineLoad operator-(const MachineLoad& after, const MachineLoad& before) {
  MachineLoad change = after;
  change.time_ns -= before.time_ns;
  change.own_cpu_ns = minus(after.own_cpu_ns, before.own_cpu_ns);
  change.busy_ns = minus(after.busy_ns, before.busy_ns);
  change.stolen_ns = minus(after.stolen_ns, before.stolen_ns);
  change.read_bytes = minus(after.read_bytes, before.read_bytes);
  change.disk_read_bytes = minus(after.disk_read_bytes, before.disk_read_bytes);
  for (ThreadLoad& thread : change.threads) {
    const auto old = std::find_if(before.threads.begin(), before.threads.end(),
                                  [&](const ThreadLoad& each) { return each.name == thread.name; });
    const bool known = old != before.threads.end();
    thread.cpu_ns = known ? minus(thread.cpu_ns, old->cpu_ns) : -1;
    thread.run_delay_ns = known ? minus(thread.run_delay_ns, old->run_delay_ns) : -1;
  }
  return change;
}

}  // namespace stoker
