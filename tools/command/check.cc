// stoker check: decodes every sample whole and lists the bad ones.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "pipeline/files/parallel.h"
#include "pipeline/source/look_ahead.h"
#include "pipeline/source/sample_checker.h"
#include "staging/allowed_cores.h"
#include "staging/mutex.h"
#include "tools/command/command.h"
#include "tools/console/progress.h"
#include "tools/data/output_file.h"
#include "tools/option/feed_options.h"

namespace stoker {
namespace {

// The bad samples that the threads have found so far, and the progress line.
class Findings {
 public:
  explicit Findings(int64_t total) : total_(total), progress_(total) {}
  // Counts the samples that are done; a null `bad` only updates the progress line.
  void note(int64_t done, Finding* bad) {
    const MutexLock lock(mutex_);
    if (bad) findings_.push_back(std::move(*bad));
    progress_.update(done, fmt::format("{} of {} images, {} bad", done, total_, findings_.size()));
  }
  std::vector<Finding> take() {
    const MutexLock lock(mutex_);
    return std::move(findings_);
  }

 private:
  const int64_t total_;
  Mutex mutex_;
  std::vector<Finding> findings_ GUARDED_BY(mutex_);
  Progress progress_ GUARDED_BY(mutex_);
};

std::vector<Finding> check_all(const Source& source, const DecodeOptions& decode, int workers) {
  std::atomic<int64_t> done{0};
  Findings found(source.size());
  const auto look_ahead = look_ahead_in_order(source);
  for_each_parallel(
      source.size(), workers, [&] { return SampleChecker(source, decode); },
      [&](SampleChecker& checker, SampleId id) {
        Finding finding;
        const bool bad = checker.is_bad(id, finding);
        const int64_t count = ++done;
        if (!bad && count % 32 != 0) return;
        found.note(count, bad ? &finding : nullptr);
      });
  std::vector<Finding> findings = found.take();
  std::sort(findings.begin(), findings.end(),
            [](const Finding& a, const Finding& b) { return a.id < b.id; });
  return findings;
}

}  // namespace

int run_check(int argc, char** argv) {
  DataOptions data;
  data.split = "all";
  int workers = usable_cores();
  std::string out;
  auto app = make_parser(
      "check",
      "Reads and decodes every image whole, in parallel, and lists the bad ones as JSONL:\n"
      "sample_id, name, path, label, reason (unreadable, empty, not_an_image, truncated, corrupt,\n"
      "unsupported, too_large, annotation), byte_offset (-1: unknown), message. Exit code 1 if "
      "there\n"
      "are any. An annotation is bad if it is broken, if it is of another size than its picture, "
      "if a\n"
      "box reaches out of that by more than a pixel, or if polygons cover no pixel. A sample of\n"
      "several pictures (--picture-from) is bad if one of them is.\n"
      "A line without sample_id stands for several files: reason, files (how many), name and path\n"
      "(of the first), message. Its reason is left_out (the format is not read, or the file is in\n"
      "no class folder), two_labels (a link puts it into two classes), which is bad, too, or with\n"
      "--objects not_annotated (pictures without annotations) and no_picture (the other way "
      "round),\n"
      "with --picture-from no_pair (samples without that picture) and no_picture.",
      "  stoker check --data data/imagenette\n"
      "  stoker check --data data/photos --out bad.jsonl --exif apply\n"
      "  stoker check --data coco/train2017 --objects coco/annotations/instances_train2017.json\n");
  add_data_option(*app, data);
  add_objects_options(*app, data);
  add_split_option(*app, data);
  add_decode_options(*app, data);
  app->add_option("--workers", workers, "Threads that decode")->check(CLI::Range(1, 1024));
  app->add_option("--out,-o", out, "File for the list (default: standard output)");
  if (const auto code = parse_options(*app, argc, argv)) return *code;

  const auto source = open_data(data, parse_split(data.split));
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Finding> findings = check_all(*source, data.decode(), workers);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const std::vector<SourceNote> notes = source->notes();
  std::string list = to_jsonl(*source, findings);
  for (const SourceNote& note : notes) list += to_jsonl(to_json(*source, note));
  if (out.empty()) {
    fmt::print("{}", list);
  } else {
    write_file(out, std::as_bytes(std::span(list)));
  }
  fmt::print(stderr, "{} images of {} classes, {} bad, {:.1f} s, {:.0f} images/s\n", source->size(),
             source->class_names().size(), findings.size(), seconds.count(),
             static_cast<double>(source->size()) / seconds.count());
  const bool is_labelled_once =
      std::none_of(notes.begin(), notes.end(),
                   [](const SourceNote& note) { return note.reason == "two_labels"; });
  return findings.empty() && is_labelled_once ? kExitOk : kExitFound;
}

}  // namespace stoker
