// Measures what an epoch reads from storage, with and without seek indexes, of files that are not
// in the page cache: bytes that the kernel fetched for this process, and the process's CPU time.
// Then, of files in the page cache and on one thread, what it costs that the first epoch makes the
// indexes: the CPU time of a Loader's first of two epochs, until it has delivered them.
//
//   piece_reads_bench [--rounds N] [--augment LIST] FOLDER
//
// FOLDER is an image folder on a disk (in memory there is nothing to fetch). The indexes, one place
// per row, are made before, in a file that stays in memory; those of the first epoch are written to
// a folder for temporary files. Rounds alternate.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/report/program.h"
#include "bench/report/statistics.h"
#include "pipeline/loader.h"
#include "pipeline/seek_index/build.h"
#include "staging/device_list.h"

namespace stoker {
namespace {

// Bytes that this process made the kernel read from storage.
int64_t fetched_bytes() {
  std::ifstream io("/proc/self/io");
  for (std::string line; std::getline(io, line);) {
    if (line.starts_with("read_bytes: ")) return std::stoll(line.substr(12));
  }
  throw std::runtime_error("/proc/self/io: no read_bytes; this kernel does not count them");
}

double cpu_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return time.tv_sec + 1e-6 * time.tv_usec; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void evict(const Source& source) {
  for (SampleId id = 0; id < source.size(); ++id) {
    const std::string path = source.root() + "/" + source.name(id);
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) throw std::runtime_error(path + ": cannot be opened");
    fdatasync(file);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    close(file);
  }
}

struct Epochs {
  std::vector<double> fetched, cpu_us;  // per image
  SeekUse use;                          // of the last
};

void run_epoch(const Source& source, const AugmentSpec& augment, const std::string& index,
               uint64_t seed, Epochs& epochs) {
  evict(source);
  const auto device = make_device("cpu:0");
  const auto stream = device->make_stream();
  LoaderOptions options{.batch_size = 32, .seed = seed, .epochs = 1};
  options.feed.decode.pixels = PixelPolicy::fast;
  options.feed.seek_index = index;
  const auto images = static_cast<double>(source.size());
  const int64_t fetched = fetched_bytes();
  const double cpu = cpu_seconds();
  Loader loader(source, augment, {device.get()}, options);
  while (const auto lease = loader.next(0, *stream)) {
  }
  epochs.fetched.push_back(static_cast<double>(fetched_bytes() - fetched) / images);
  epochs.cpu_us.push_back(1e6 * (cpu_seconds() - cpu) / images);
  epochs.use = loader.stats().seek_index;
}

// Returns the microseconds of CPU time per image of a first epoch.
double first_epoch(const Source& source, const AugmentSpec& augment, const std::string& index,
                   uint64_t seed) {
  const auto device = make_device("cpu:0");
  const auto stream = device->make_stream();
  LoaderOptions options{.batch_size = 32, .seed = seed, .epochs = 2};
  options.feed.workers = 0;
  options.feed.decode.pixels = PixelPolicy::fast;
  options.feed.seek_index = index;
  const double cpu = cpu_seconds();
  Loader loader(source, augment, {device.get()}, options);
  for (Step step = 0; step < loader.steps_per_epoch(); ++step) loader.next(0, *stream);
  return 1e6 * (cpu_seconds() - cpu) / static_cast<double>(source.size());
}

void compare_first_epochs(const Source& source, const AugmentSpec& augment, int rounds,
                          const std::string& folder) {
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  std::vector<double> plain, noting, more;
  for (int round = 0; round <= rounds; ++round) {
    const auto seed = static_cast<uint64_t>(round);
    const double off = first_epoch(source, augment, "off", seed);
    const double on = first_epoch(source, augment, "auto", seed);
    std::filesystem::remove_all(folder);
    if (round == 0) continue;  // a warm-up
    plain.push_back(off);
    noting.push_back(on);
    more.push_back(100 * (on / off - 1));
  }
  const Summary off = summarise(plain), on = summarise(noting), percent = summarise(more);
  std::printf(
      "\nThe first epoch, in memory, one thread: %.1f us of CPU without indexes, %.1f making "
      "them; %+.1f %% (%+.1f to %+.1f)\n",
      off.median, on.median, percent.median, percent.min, percent.max);
}

void print(const char* name, const Epochs& epochs, int64_t images) {
  const Summary fetched = summarise(epochs.fetched), cpu = summarise(epochs.cpu_us);
  std::printf("%-8s %9.1f (%.1f-%.1f) %13.1f (%.1f-%.1f) %12.1f\n", name, fetched.median / 1024,
              fetched.min / 1024, fetched.max / 1024, cpu.median, cpu.min, cpu.max,
              static_cast<double>(epochs.use.unread_bytes) / 1024 / static_cast<double>(images));
}

int run(int argc, char** argv) {
  int rounds = 5;
  std::string folder, list = "random_resized_crop(224) | flip";
  CLI::App app("Measures what an epoch reads from storage, with and without seek indexes.");
  app.add_option("--rounds", rounds)->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--augment", list)->capture_default_str();
  app.add_option("folder", folder)->required();
  CLI11_PARSE(app, argc, argv);
  const auto source = open_source(folder, Split::all);
  const std::string index = (std::filesystem::temp_directory_path() /
                             ("piece_reads_" + std::to_string(getpid()) + ".bin"))
                                .string();
  build_seek_indexes(*source, index, {.step = SeekStep::row, .workers = 2, .go_on = {}});
  const AugmentSpec augment(list);
  Epochs whole, pieces;
  for (int round = 0; round <= rounds; ++round) {
    if (round == 1) whole = pieces = {};  // the first is a warm-up
    const auto seed = static_cast<uint64_t>(round);
    run_epoch(*source, augment, "off", seed, whole);
    run_epoch(*source, augment, index, seed, pieces);
  }
  std::filesystem::remove(index);
  std::printf("%s, %s images; per image, the median of %d epochs (lowest-highest)\n", list.c_str(),
              std::to_string(source->size()).c_str(), rounds);
  std::printf("%-8s %21s %27s %12s\n", "", "KiB fetched", "us of CPU", "KiB unread");
  print("whole", whole, source->size());
  print("pieces", pieces, source->size());
  compare_first_epochs(*source, augment, rounds, index + ".cache");
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  return stoker::run_program("piece_reads_bench", stoker::run, argc, argv);
}
