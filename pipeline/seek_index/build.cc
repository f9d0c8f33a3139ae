#include "pipeline/seek_index/build.h"

#include <atomic>
#include <map>
#include <memory>
#include <stdexcept>

#include "pipeline/files/parallel.h"
#include "pipeline/seek_index/file.h"
#include "pipeline/source/file_stamp.h"
#include "pipeline/source/look_ahead.h"
#include "staging/mutex.h"

namespace stoker {
namespace {

// The result of one sample. An empty index: there is none, because the sample is bad or of another
// kind.
struct Indexed {
  FileStamp stamp;
  std::vector<uint8_t> index;
  int64_t jpeg_bytes = 0;
  bool bad = false;
  Finding finding;
};

// Makes the index of one sample after the other. One per thread.
class Indexer {
 public:
  Indexer(const Source& source, SeekStep step)
      : source_(source), step_(step), checker_(source, {}) {}

  Indexed run(SampleId id) {
    Indexed result;
    std::span<const uint8_t> bytes;
    result.stamp = settled_stamp(source_.storage().stamp(id), system_now_ns());
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
  const Source& source_;
  const SeekStep step_;
  SeekIndexBuilder builder_;
  SampleChecker checker_;
};

// Takes results in any order and writes them in the order of the samples.
class OrderedResults {
 public:
  OrderedResults(const Source& source, SeekIndexWriter& writer, const SeekIndexOptions& options)
      : source_(source), writer_(writer), options_(options) {}

  void add(SampleId id, Indexed indexed) {
    const MutexLock lock(mutex_);
    waiting_.emplace(id, std::move(indexed));
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_;
         first = waiting_.erase(first), ++next_) {
      write(first->first, first->second);
    }
    if (options_.go_on && !options_.go_on(next_, totals_)) stopped_ = true;
  }

  bool stopped() const { return stopped_; }
  // Returns the totals of everything that was added. Call it once.
  SeekIndexTotals totals() {
    const MutexLock lock(mutex_);
    return std::move(totals_);
  }

 private:
  void write(SampleId id, Indexed& indexed) REQUIRES(mutex_) {
    if (indexed.bad) totals_.bad.push_back(std::move(indexed.finding));
    if (indexed.index.empty()) return;
    ++totals_.indexed;
    totals_.jpeg_bytes += indexed.jpeg_bytes;
    totals_.index_bytes += static_cast<int64_t>(indexed.index.size());
    writer_.add(source_.name(id), {indexed.stamp, indexed.index});
  }

  const Source& source_;
  SeekIndexWriter& writer_;
  const SeekIndexOptions& options_;
  Mutex mutex_;
  SeekIndexTotals totals_ GUARDED_BY(mutex_);
  std::map<SampleId, Indexed> waiting_ GUARDED_BY(mutex_);
  SampleId next_ GUARDED_BY(mutex_) = 0;
  std::atomic<bool> stopped_{false};
};

}  // namespace

std::optional<SeekIndexTotals> build_seek_indexes(const Source& source, const std::string& path,
                                                  const SeekIndexOptions& options) {
  if (source.encoding() != SampleEncoding::image_file) {
    throw std::invalid_argument(source.root() +
                                ": no image files there, only JPEG files have seek indexes");
  }
  SeekIndexWriter writer(path);
  OrderedResults results(source, writer, options);
  const auto look_ahead = look_ahead_in_order(source);
  for_each_parallel(
      source.size(), options.workers,
      [&] { return std::make_unique<Indexer>(source, options.step); },
      [&](std::unique_ptr<Indexer>& indexer, SampleId id) {
        if (!results.stopped()) results.add(id, indexer->run(id));
      });
  if (results.stopped()) return std::nullopt;
  writer.finish();
  SeekIndexTotals totals = results.totals();
  totals.file_bytes = writer.bytes();
  return totals;
}

}  // namespace stoker
