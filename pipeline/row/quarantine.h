// Reports bad samples to the user: a JSONL file and a budget.
//
// Workers report what they met. The line is written, and the budget is charged, when the batch with
// the row is handed out. So the list is in step order per device, has exactly the samples that were
// delivered (none that was only read ahead), and a resumed run continues it without gap or
// repetition. Each sample counts once per epoch. Owner: Loader. Threads: any. Errors: the
// constructor and hand_out() throw std::runtime_error if the file cannot be written, or is a pipe,
// a device or a folder; hand_out() throws when the budget is spent.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "pipeline/loader_types.h"
#include "pipeline/source.h"
#include "pipeline/source/sample_checker.h"
#include "staging/mutex.h"

namespace stoker {

struct BadSample {
  Step step = 0;
  int64_t epoch = 0;
  int device = 0;
  int row = 0;
  Finding finding;
};

class Quarantine {
 public:
  // `source` must outlive it. Opens options.quarantine_file for appending.
  Quarantine(const Source& source, const LoaderOptions& options);
  Quarantine(const Quarantine&) = delete;
  Quarantine& operator=(const Quarantine&) = delete;

  void report(BadSample sample);
  // Call it when the batch (device, step) goes to the user.
  void hand_out(int device, Step step);

  int64_t budget() const { return budget_; }  // bad samples that an epoch may have
  int64_t bad_samples() const { return total_.load(std::memory_order_relaxed); }

 private:
  struct EpochRecord {
    std::unordered_set<SampleId> ids;
    std::vector<std::string> first_names;  // for the message
  };
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void record(const BadSample& sample) REQUIRES(mutex_);
  [[noreturn]] void fail(const BadSample& last, const EpochRecord& epoch) const;

  const Source& source_;
  const OnBadSample on_bad_sample_;
  const double max_bad_;
  const int64_t budget_;
  const std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::atomic<int64_t> pending_count_{0};  // lets hand_out() return without the lock
  std::atomic<int64_t> total_{0};
  Mutex mutex_;
  std::vector<BadSample> pending_ GUARDED_BY(mutex_);
  std::map<int64_t, EpochRecord> epochs_ GUARDED_BY(mutex_);
};

}  // namespace stoker
