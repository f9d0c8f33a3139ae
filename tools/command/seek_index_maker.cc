#include "tools/command/seek_index_maker.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>

#include "tools/console/interrupt.h"
#include "tools/console/progress.h"

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

}  // namespace stoker
