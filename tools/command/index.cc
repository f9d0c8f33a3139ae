// stoker index: makes the seek indexes of a data set's JPEG files.
#include "tools/command/index.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "pipeline/seek_index/file.h"
#include "pipeline/source/sample_checker.h"
#include "pipeline/store/object_store.h"
#include "staging/allowed_cores.h"
#include "tools/command/command.h"
#include "tools/console/interrupt.h"
#include "tools/console/progress.h"
#include "tools/option/feed_options.h"

namespace stoker {
namespace {

const std::map<std::string, SeekStep> kGranularities = {{"row", SeekStep::row},
                                                        {"8", SeekStep::eight}};

struct IndexArguments {
  DataOptions data;
  std::string granularity = "row";
  std::string out;
  int workers = usable_cores();
  bool json = false;
};

double percent(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

void print_index_json(const Source& source, const IndexArguments& arguments,
                      const std::string& path, const SeekIndexTotals& result, double seconds) {
  nlohmann::ordered_json bad = nlohmann::ordered_json::array();
  for (const Finding& finding : result.bad) bad.push_back(to_json(source, finding));
  const nlohmann::ordered_json json = {
      {"file", path},
      {"granularity", arguments.granularity},
      {"images", source.size()},
      {"indexed", result.indexed},
      {"jpeg_bytes", result.jpeg_bytes},
      {"index_bytes", result.index_bytes},
      {"file_bytes", result.file_bytes},
      {"file_percent", percent(result.file_bytes, result.jpeg_bytes)},
      {"seconds", seconds},
      {"bad", bad}};
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_index_text(const Source& source, const IndexArguments& arguments,
                      const std::string& path, const SeekIndexTotals& result, double seconds) {
  fmt::print("{}", to_jsonl(source, result.bad));
  const auto images = static_cast<double>(source.size());
  fmt::print(stderr,
             "{} images, {} indexed, {} bad, {} of other kinds, {:.1f} s, {:.0f} images/s\n"
             "{}: {} bytes, {:.2f} % of {} bytes of JPEG{}\n",
             source.size(), result.indexed, result.bad.size(),
             source.size() - result.indexed - static_cast<int64_t>(result.bad.size()), seconds,
             images / seconds, path, result.file_bytes,
             percent(result.file_bytes, result.jpeg_bytes), result.jpeg_bytes,
             arguments.out.empty() ? "; found by itself" : "; for --seek-index");
}

}  // namespace

int run_index(int argc, char** argv) {
  IndexArguments arguments;
  arguments.data.split = "all";
  auto app = make_parser(
      "index",
      "Makes the seek indexes of a data set's JPEG files. An index has places from which decoding\n"
      "can begin, so that less of a file is read. Images and pixels stay as they are. All indexes\n"
      "go to one file in the cache directory, where training on --data finds it; an image that\n"
      "changes later is read without its index. Bad files are listed as by stoker check; the exit\n"
      "code is 1 if there are any.",
      "  stoker index --data data/imagenette\n"
      "  stoker index --data data/imagenet --granularity 8 --out /fast/imagenet.seek\n");
  add_data_option(*app, arguments.data);
  add_split_option(*app, arguments.data);
  app->add_option(
         "--granularity", arguments.granularity,
         "How many places an index has. row: one per row of MCUs (blocks of 8 to 16 pixels), which "
         "takes about 0.3% of the data; 8: one per 8 MCUs, which takes about 2% and is faster")
      ->check(CLI::IsMember(&kGranularities));
  app->add_option("--out,-o", arguments.out, "File to write (default: in the cache directory)");
  app->add_option("--workers", arguments.workers, "Threads that decode")
      ->check(CLI::Range(1, 1024));
  app->add_flag("--json", arguments.json, "Print JSON");
  if (const auto code = parse_options(*app, argc, argv)) return *code;

  const auto source = open_data(arguments.data, parse_split(arguments.data.split));
  if (source->encoding() != SampleEncoding::image_file) {
    throw std::invalid_argument("--data: " + shown_path(arguments.data.data) +
                                ": no image files there, only JPEG files have seek indexes");
  }
  const std::string path = arguments.out.empty() ? default_seek_index_path(*source) : arguments.out;
  if (path.empty()) {
    throw std::invalid_argument("--out: neither XDG_CACHE_HOME nor HOME is set: name a file");
  }
  const SeekIndexRun run =
      make_seek_indexes(*source, path, kGranularities.at(arguments.granularity), arguments.workers);
  if (!run.totals) {
    fmt::print(stderr, "interrupted: nothing was written\n");
    return kExitSignal + run.signal;
  }
  arguments.json ? print_index_json(*source, arguments, path, *run.totals, run.seconds)
                 : print_index_text(*source, arguments, path, *run.totals, run.seconds);
  return run.totals->bad.empty() ? kExitOk : kExitFound;
}

SeekIndexRun make_seek_indexes(const Source& source, const std::string& path, SeekStep step,
                               int workers) {
  std::atomic<bool> stop{false};
  const Interrupt interrupt([](void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; },
                            &stop, "\nstopping; once more to stop at once\n");
  Progress progress(source.size());
  const auto go_on = [&](int64_t done, const SeekIndexTotals& so_far) {
    if (progress.due()) {
      progress.update(done, fmt::format("{} of {} images, {} indexed, {} bad", done, source.size(),
                                        so_far.indexed, so_far.bad.size()));
    }
    return !stop;
  };
  const auto begin = std::chrono::steady_clock::now();
  SeekIndexRun run;
  run.totals = build_seek_indexes(source, path, {.step = step, .workers = workers, .go_on = go_on});
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  run.signal = interrupt.signal();
  return run;
}

}  // namespace stoker
