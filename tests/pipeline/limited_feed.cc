// Runs a feed within a limit of memory and prints, as JSON, the peak by which the process has grown
// beside what was planned; bench/results/memory.md is made of it.
//   limited_feed DIR MIB WORKERS [SIZE [BATCH [EPOCHS [AUGMENT]]]]
// MIB 0: the default limit. Exit code 1: the peak exceeds the limit.
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include "pipeline/loader.h"
#include "staging/device_list.h"
#include "staging/stage_stats.h"

namespace {

using namespace stoker;

constexpr int64_t kMebibytes = 1 << 20;

int64_t process_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1)) * 1024;
  }
  return -1;
}

// CPU time of this process so far.
double spent_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int run_limited_feed(int count, char** arguments) {
  if (count < 4) {
    std::fputs("usage: limited_feed DIR MIB WORKERS [SIZE [BATCH [EPOCHS [AUGMENT]]]]\n", stderr);
    return 2;
  }
  const auto number = [&](int i, int otherwise) {
    return count > i ? std::atoi(arguments[i]) : otherwise;
  };
  const int64_t limit = std::atoll(arguments[2]) * kMebibytes;
  const int size = number(4, 224);
  const auto source = open_source(arguments[1], Split::all);
  const auto device = make_device("cpu:0");
  const auto stream = device->make_stream();
  LoaderOptions options{.batch_size = number(5, 64), .epochs = double(number(6, 1))};
  options.feed.memory = limit;
  options.feed.workers = number(3, 1);
  options.feed.max_bad = 1e9;
  options.feed.decode.max_pixels = 1'000'000'000;
  options.feed.seek_index = "off";
  const AugmentSpec augment(count > 7 ? arguments[7] : "random_resized_crop | flip", {size, size});
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // reset the peak
  const int64_t before = process_bytes("VmRSS");
  const int64_t begin_ns = steady_now_ns();
  int64_t rows = 0;
  Loader loader(*source, augment, {device.get()}, options);
  const MemoryPlan plan = loader.memory_plan();
  while (const DeviceBatch batch = loader.next(0, *stream)) rows += batch.header().valid;
  const double seconds = 1e-9 * static_cast<double>(steady_now_ns() - begin_ns);
  const int64_t peak = process_bytes("VmHWM") - before;
  const LoaderStats stats = loader.stats();
  std::printf(
      "{\"peak_mib\": %.1f, \"expected_mib\": %.1f, \"most_mib\": %.1f, \"limit_mib\": %.1f, "
      "\"images\": %ld, \"bad\": %ld, \"waits\": %ld, \"taken_mib\": %.1f, \"seconds\": %.2f, "
      "\"cpu_seconds\": %.3f}\n",
      static_cast<double>(peak) / kMebibytes, static_cast<double>(plan.expected_bytes) / kMebibytes,
      static_cast<double>(plan.most_bytes()) / kMebibytes,
      static_cast<double>(plan.limit_bytes) / kMebibytes, static_cast<long>(rows),
      static_cast<long>(stats.bad_samples), static_cast<long>(stats.memory_waits),
      static_cast<double>(stats.memory_taken) / kMebibytes, seconds, spent_seconds());
  return limit > 0 && peak > limit ? 1 : 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run_limited_feed(count, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "limited_feed: %s\n", error.what());
    return 2;
  }
}
