// Measures what a data set of many samples costs before the first batch, in this process: opening
// it with its index in the cache directory, making a Loader, the first batch, and the same for a
// Loader that resumes in the middle of an epoch; and memory. Wall time, on one thread without
// decoding ahead; the page cache holds what the rounds before have read.
//
//   many_samples_bench [--rounds N] [--batch N] DATA
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/report/program.h"
#include "bench/report/statistics.h"
#include "pipeline/loader.h"
#include "staging/device_list.h"
#include "staging/stage_stats.h"

namespace stoker {
namespace {

double seconds_since(int64_t begin_ns) {
  return 1e-9 * static_cast<double>(steady_now_ns() - begin_ns);
}

// Returns a line of /proc/self/status, in KiB: "RssAnon".
int64_t memory_kib(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1));
  }
  return 0;
}

struct Times {
  std::vector<double> open, fresh, resumed;
};

// Returns the seconds from the constructor to the first batch.
double first_batch(const Source& source, int batch, Step first_step) {
  const auto device = make_device("cpu:0");
  const auto stream = device->make_stream();
  LoaderOptions options{.batch_size = batch, .seed = 3, .first_step = first_step};
  options.feed.workers = 0;
  options.feed.seek_index = "off";
  const int64_t begin = steady_now_ns();
  Loader loader(source, AugmentSpec("random_resized_crop", {32, 32}), {device.get()}, options);
  loader.next(0, *stream);
  return seconds_since(begin);
}

int run(int argc, char** argv) {
  int rounds = 7, batch = 256;
  std::string data;
  CLI::App app("Measures a data set of many samples.");
  app.add_option("--rounds", rounds)->check(CLI::Range(1, 1000));
  app.add_option("--batch", batch)->check(CLI::Range(1, 1 << 20));
  app.add_option("data", data)->required();
  CLI11_PARSE(app, argc, argv);
  const int64_t before_kib = memory_kib("RssAnon");
  int64_t begin = steady_now_ns();
  std::unique_ptr<Source> source = open_source(data, Split::all);
  const double made = seconds_since(begin);  // with the index, where it was not there
  Times times;
  for (int round = 0; round < rounds; ++round) {
    source.reset();
    begin = steady_now_ns();
    source = open_source(data, Split::all);
    times.open.push_back(seconds_since(begin));
    const Step middle = source->size() / batch / 2 + round;
    times.fresh.push_back(first_batch(*source, batch, round));
    times.resumed.push_back(first_batch(*source, batch, middle));
  }
  nlohmann::ordered_json json = {{"samples", source->size()},
                                 {"batch", batch},
                                 {"rounds", rounds},
                                 {"first_open_s", made},
                                 {"anonymous_kib", memory_kib("RssAnon") - before_kib},
                                 {"mapped_kib", memory_kib("RssFile")}};
  for (const auto& [name, seconds] :
       {std::pair("open_ms", times.open), std::pair("first_batch_ms", times.fresh),
        std::pair("resumed_batch_ms", times.resumed)}) {
    const Summary summary = summarise(seconds);
    json[name] = {
        {"median", 1e3 * summary.median}, {"low", 1e3 * summary.min}, {"high", 1e3 * summary.max}};
  }
  std::printf("%s\n", json.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  return stoker::run_program("many_samples_bench", stoker::run, argc, argv);
}
