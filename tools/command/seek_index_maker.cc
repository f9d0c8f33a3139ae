#include "tools/command/seek_index_maker.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <stdexcept>

#include "pipeline/seek_index/file.h"
#include "staging/allowed_cores.h"
#include "tools/console/interrupt.h"
#include "tools/console/progress.h"
#include "tools/option/feed_options.h"

namespace stoker {

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

int make_missing_seek_indexes(const DataOptions& data, const std::string& choice, bool say) {
  if (choice == "off") throw std::invalid_argument("--build-seek-index: --seek-index is off");
  // All parts are indexed, because what is only trained on now may be evaluated later.
  const auto source = open_data(data, Split::all);
  if (source->encoding() != SampleEncoding::image_file) return 0;
  const std::string path = choice == "auto" ? auto_seek_index_path(*source) : choice;
  if (path.empty()) {
    throw std::invalid_argument(
        "--build-seek-index: neither XDG_CACHE_HOME nor HOME is set: name a file with "
        "--seek-index");
  }
  std::string problem;
  if (SeekIndexFile::open(path, problem)) return 0;
  const SeekIndexRun run = make_seek_indexes(*source, path, SeekStep::row, usable_cores());
  if (!run.totals) return run.signal;
  if (say) {
    fmt::print("{:<12} {} of {} images, {} bad, {:.1f} s: {}\n", "seek index", run.totals->indexed,
               source->size(), run.totals->bad.size(), run.seconds, path);
    std::fflush(stdout);  // the run that follows is long
  }
  return 0;
}

}  // namespace stoker
