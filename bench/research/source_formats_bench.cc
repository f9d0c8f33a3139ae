// Compares what a sample costs in a folder, in shards of several formats and in a list: the CPU
// time of reading it, and of making a training row of it (random-resized crop to 224, random flip,
// pixel policy fast, no seek index), on one thread. The sources have the same pictures and take
// turns; each round is one shuffled epoch. Read everything once before (it does): the page cache
// must hold all sources.
//
//   source_formats_bench [--rounds N] [--limit N] NAME=PATH...      the first is what others are
//                                                                   compared with
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/report/program.h"
#include "bench/report/statistics.h"
#include "pipeline/loader.h"
#include "pipeline/sample_order.h"
#include "pipeline/source/subset_source.h"
#include "staging/device_list.h"
#include "tools/machine/cpu_time.h"

namespace stoker {
namespace {

struct Measured {
  std::string name;
  std::unique_ptr<Source> whole;
  std::unique_ptr<SubsetSource> source;
  std::vector<double> read, row;  // CPU seconds per sample, by round
};

double read_seconds(const Source& source) {
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  const SharedOrder order = shuffled_order(source.size());
  const EpochKey epoch(1, 0);
  const double begin = process_cpu_seconds();
  for (int64_t i = 0; i < source.size(); ++i) {
    const SampleId id = order->at(epoch, i).id;
    if (!source.read_cached(id, buffer, bytes) && !source.read(id, buffer, bytes).ok) {
      throw std::runtime_error(source.name(id) + " cannot be read");
    }
  }
  return (process_cpu_seconds() - begin) / static_cast<double>(source.size());
}

double row_seconds(const Source& source, uint64_t seed) {
  const auto device = make_device("cpu:0");
  const auto stream = device->make_stream();
  const AugmentSpec augment("random_resized_crop | flip", {224, 224});
  LoaderOptions options{.batch_size = 50, .seed = seed};
  options.feed.workers = 0;
  options.feed.seek_index = "off";
  options.feed.decode.pixels = PixelPolicy::fast;
  Loader loader(source, augment, {device.get()}, options);
  const double begin = process_cpu_seconds();
  while (loader.next(0, *stream)) {
  }
  return (process_cpu_seconds() - begin) / static_cast<double>(source.size());
}

Measured open_named(const std::string& argument, int64_t limit) {
  const size_t equals = argument.find('=');
  if (equals == std::string::npos) throw std::invalid_argument(argument + " is not NAME=PATH");
  Measured measured;
  measured.name = argument.substr(0, equals);
  measured.whole = open_source(argument.substr(equals + 1), Split::all);
  measured.source = std::make_unique<SubsetSource>(*measured.whole, limit);
  return measured;
}

nlohmann::ordered_json report(const Measured& measured, const Measured& first) {
  nlohmann::ordered_json json = {{"name", measured.name}, {"samples", measured.source->size()}};
  const auto add = [&](const char* what, const std::vector<double>& seconds,
                       const std::vector<double>& base) {
    std::vector<double> rates;
    for (size_t i = 0; i < seconds.size(); ++i) rates.push_back(base[i] / seconds[i]);
    const Summary ratio = summarise(rates);
    const double us = 1e6 * median(seconds);
    json[what] = {{"us", us}, {"rate", ratio.median}, {"low", ratio.min}, {"high", ratio.max}};
    std::printf("%-12s %-5s %9.2f us   %.3f (%.3f-%.3f) of the rate of %s\n", measured.name.c_str(),
                what, us, ratio.median, ratio.min, ratio.max, first.name.c_str());
  };
  add("read", measured.read, first.read);
  add("row", measured.row, first.row);
  return json;
}

int run(int argc, char** argv) {
  int rounds = 7;
  int64_t limit = 2000;
  std::vector<std::string> arguments;
  CLI::App app("Compares sources of the same pictures.");
  app.add_option("--rounds", rounds)->check(CLI::Range(1, 1000));
  app.add_option("--limit", limit, "Samples of each source, spread evenly; 0: all");
  app.add_option("sources", arguments, "NAME=PATH")->required();
  CLI11_PARSE(app, argc, argv);
  std::vector<Measured> all;
  for (const std::string& argument : arguments) all.push_back(open_named(argument, limit));
  for (Measured& each : all) {
    read_seconds(*each.source);
    row_seconds(*each.source, 0);
  }
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < all.size(); ++i) {
      Measured& each = all[(i + static_cast<size_t>(round)) % all.size()];
      each.read.push_back(read_seconds(*each.source));
      each.row.push_back(row_seconds(*each.source, static_cast<uint64_t>(round) + 1));
    }
  }
  nlohmann::ordered_json json = {{"rounds", rounds}, {"sources", nlohmann::ordered_json::array()}};
  for (const Measured& each : all) json["sources"].push_back(report(each, all.front()));
  std::printf("%s\n", json.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  return stoker::run_program("source_formats_bench", stoker::run, argc, argv);
}
