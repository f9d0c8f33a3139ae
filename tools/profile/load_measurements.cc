#include <algorithm>
#include <string>

#include "tools/profile/measurement_parts.h"

namespace stoker {
namespace {

bool starts_with(const std::string& text, const char* start) { return text.rfind(start, 0) == 0; }

// A sum over windows. It is unknown (-1) if one of its parts is.
class Sum {
 public:
  void add(int64_t value) {
    known_ = known_ && value >= 0;
    sum_ += static_cast<double>(value);
  }
  bool known() const { return known_; }
  double value() const { return sum_; }
  double seconds() const { return sum_ * kNanosecond; }

 private:
  double sum_ = 0;
  bool known_ = true;
};

}  // namespace

void measure_load(const std::vector<PhaseWindow>& windows, RunMeasurements& result) {
  if (result.seconds <= 0) return;
  Sum own, busy, stolen, read, disk;
  double consumer_delay = 0, consumer_time = 0, worker_delay = 0, worker_cpu = 0;
  for (const PhaseWindow& window : windows) {
    own.add(window.load.own_cpu_ns);
    busy.add(window.load.busy_ns);
    stolen.add(window.load.stolen_ns);
    read.add(window.load.read_bytes);
    disk.add(window.load.disk_read_bytes);
    for (const ThreadLoad& thread : window.load.threads) {
      if (thread.run_delay_ns < 0) continue;
      const double delay = static_cast<double>(thread.run_delay_ns) * kNanosecond;
      if (starts_with(thread.name, "replica")) {
        consumer_delay += delay;
        consumer_time += window.seconds();
      } else if (starts_with(thread.name, "worker")) {
        worker_delay += delay;
        worker_cpu += static_cast<double>(thread.cpu_ns) * kNanosecond;
      }
    }
  }
  if (own.known()) result.own_cores = own.seconds() / result.seconds;
  if (own.known() && busy.known()) {
    result.other_cores = std::max(0.0, busy.seconds() / result.seconds - result.own_cores);
  }
  if (stolen.known()) result.stolen_cores = stolen.seconds() / result.seconds;
  if (consumer_time > 0) result.consumer_delay_share = consumer_delay / consumer_time;
  if (worker_cpu > 0) result.worker_delay_share = worker_delay / (worker_delay + worker_cpu);
  if (disk.known() && read.known() && read.value() > 0) {
    result.disk_share = std::min(1.0, disk.value() / read.value());
  }
}

}  // namespace stoker
