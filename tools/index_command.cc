// stoker index: makes the seek indexes of a data set's JPEG files.

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "decode/seek_index.h"
#include "pipeline/seek_index_writer.h"
#include "tools/command.h"
#include "tools/feed_options.h"
#include "tools/host_info.h"
#include "tools/interrupt.h"
#include "tools/parallel.h"
#include "tools/progress.h"
#include "tools/sample_checker.h"

namespace stoker {
namespace {

const std::map<std::string, SeekStep> kGranularities = {{"row", SeekStep::row},
                                                        {"8", SeekStep::eight}};

struct IndexArguments {
  DataOptions data;
  std::string granularity = "row";
  std::string out;
  int workers = host_cores();
  bool json = false;
};

struct IndexResult {
  int64_t indexed = 0;
  int64_t jpeg_bytes = 0;   // of the files with an index
  int64_t index_bytes = 0;  // of their indexes
  int64_t file_bytes = 0;   // of the file that holds them
  std::vector<Finding> bad;
  double seconds = 0;
};

// What became of one sample. An empty index: none, because it is bad or not of that kind.
struct Indexed {
  std::vector<uint8_t> index;
  int64_t jpeg_bytes = 0;
  bool bad = false;
  Finding finding;
};

// One per thread.
class Indexer {
 public:
  Indexer(const Source& source, SeekStep step) : step_(step), checker_(source, {}) {}

  Indexed run(SampleId id) {
    Indexed result;
    std::span<const uint8_t> bytes;
    result.bad = checker_.is_unreadable(id, bytes, result.finding);
    if (result.bad) return result;
    if (builder_.build(bytes, step_, result.index)) {
      result.jpeg_bytes = static_cast<int64_t>(bytes.size());
    } else {  // another kind of file, or a damaged one
      result.index.clear();
      result.bad = checker_.is_damaged(id, bytes, result.finding);
    }
    return result;
  }

 private:
  const SeekStep step_;
  SeekIndexBuilder builder_;
  SampleChecker checker_;
};

// Takes results in any order and writes them in that of the samples: the same file for any number
// of threads.
class OrderedResults {
 public:
  OrderedResults(const Source& source, SeekIndexWriter& writer, IndexResult& result)
      : source_(source), writer_(writer), result_(result), progress_(source.size()) {}

  void add(SampleId id, Indexed indexed) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(id, std::move(indexed));
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_;
         first = waiting_.erase(first), ++next_) {
      write(first->first, first->second);
    }
    if (!progress_.due()) return;
    progress_.update(next_, fmt::format("{} of {} images, {} indexed, {} bad", next_,
                                        source_.size(), result_.indexed, result_.bad.size()));
  }

 private:
  void write(SampleId id, Indexed& indexed) {
    if (indexed.bad) result_.bad.push_back(std::move(indexed.finding));
    if (indexed.index.empty()) return;
    ++result_.indexed;
    result_.jpeg_bytes += indexed.jpeg_bytes;
    result_.index_bytes += static_cast<int64_t>(indexed.index.size());
    writer_.add(source_.name(id), indexed.index);
  }

  const Source& source_;
  SeekIndexWriter& writer_;
  IndexResult& result_;
  Progress progress_;
  std::mutex mutex_;
  std::map<SampleId, Indexed> waiting_;
  SampleId next_ = 0;
};

IndexResult index_all(const Source& source, const IndexArguments& arguments,
                      const std::string& path, std::atomic<bool>& stop) {
  const auto begin = std::chrono::steady_clock::now();
  const SeekStep step = kGranularities.at(arguments.granularity);
  IndexResult result;
  SeekIndexWriter writer(path);
  {
    OrderedResults results(source, writer, result);
    for_each_parallel(
        source.size(), arguments.workers, [&] { return std::make_unique<Indexer>(source, step); },
        [&](std::unique_ptr<Indexer>& indexer, SampleId id) {
          if (!stop) results.add(id, indexer->run(id));
        });
  }
  if (stop) return result;
  writer.finish();
  result.file_bytes = writer.bytes();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

double percent(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

void print_json(const Source& source, const IndexArguments& arguments, const std::string& path,
                const IndexResult& result) {
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
      {"seconds", result.seconds},
      {"bad", bad}};
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_text(const Source& source, const IndexArguments& arguments, const std::string& path,
                const IndexResult& result) {
  fmt::print("{}", to_jsonl(source, result.bad));
  const auto images = static_cast<double>(source.size());
  fmt::print(stderr,
             "{} images, {} indexed, {} bad, {} of other kinds, {:.1f} s, {:.0f} images/s\n"
             "{}: {} bytes, {:.2f} % of {} bytes of JPEG{}\n",
             source.size(), result.indexed, result.bad.size(),
             source.size() - result.indexed - static_cast<int64_t>(result.bad.size()),
             result.seconds, images / result.seconds, path, result.file_bytes,
             percent(result.file_bytes, result.jpeg_bytes), result.jpeg_bytes,
             arguments.out.empty() ? "; found by itself with --pixels fast"
                                   : "; for --seek-index, with --pixels fast");
}

}  // namespace

int run_index(int argc, char** argv) {
  IndexArguments arguments;
  arguments.data.split = "all";
  auto app = make_parser(
      "index",
      "Makes the seek indexes of a data set's JPEG files: places from which --pixels fast can "
      "begin\n"
      "to decode, so that it reads less of a file. The images stay as they are, and so do the "
      "pixels\n"
      "that come out. The indexes go to one file in the cache directory, where training on --data\n"
      "finds it; a file that changes later is read without its index. Bad files are listed as by\n"
      "stoker check; exit code 1 if there are any.",
      "  stoker index --data data/imagenette\n"
      "  stoker index --data data/imagenet --granularity 8 --out /fast/imagenet.seek\n");
  add_data_option(*app, arguments.data);
  add_split_option(*app, arguments.data);
  app->add_option("--granularity", arguments.granularity,
                  "A place per row of MCUs (blocks of 8 to 16 pixels; about 0.3% of the data), or "
                  "per 8 MCUs (about 2%, faster)")
      ->check(CLI::IsMember(&kGranularities));
  app->add_option("--out,-o", arguments.out, "File to write (default: in the cache directory)");
  app->add_option("--workers", arguments.workers, "Threads")->check(CLI::Range(1, 1024));
  app->add_flag("--json", arguments.json, "Print JSON");
  if (const auto code = parse_options(*app, argc, argv)) return *code;

  const auto source = open_data(arguments.data.data, parse_split(arguments.data.split));
  if (source->encoding() != SampleEncoding::image_file) {
    throw std::invalid_argument("--data: " + arguments.data.data +
                                ": no image files there, only JPEG files have seek indexes");
  }
  const std::string path = arguments.out.empty() ? default_seek_index_path(*source) : arguments.out;
  if (path.empty()) {
    throw std::invalid_argument("--out: neither XDG_CACHE_HOME nor HOME is set: name a file");
  }
  std::atomic<bool> stop{false};
  const Interrupt interrupt([](void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; },
                            &stop);
  const IndexResult result = index_all(*source, arguments, path, stop);
  if (stop) {
    fmt::print(stderr, "interrupted: nothing was written\n");
    return kExitSignal + interrupt.signal();
  }
  arguments.json ? print_json(*source, arguments, path, result)
                 : print_text(*source, arguments, path, result);
  return result.bad.empty() ? kExitOk : kExitFound;
}

}  // namespace stoker
