#include "pipeline/exchange/remote_filler.h"

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <string>
#include <thread>

#include "pipeline/files/invalid_field.h"
#include "pipeline/row/fingerprint.h"
#include "pipeline/row/loader_options.h"
#include "pipeline/row/row_filler.h"
#include "staging/mutex.h"
#include "staging/threads.h"

namespace stoker {
namespace {

// So many pieces of a call for each thread: then none is idle for long at its end.
constexpr int kPiecesPerThread = 4;

// The pixels of a message are u8; and no file of bad samples is written here.
LoaderOptions plain_options(LoaderOptions options) {
  options.format.reset();
  options.quarantine_file.clear();
  options.tracer = nullptr;
  return options;
}

}  // namespace

struct RemoteFiller::Impl {
  // One call of fill(), in pieces. It lives on the caller's stack until all of them are done.
  struct Call {
    BatchPosition position;
    Slab slab;
    int rows = 0;
    int piece = 1;
    int next = 0;  // the first row that nobody took
    int left = 0;  // rows that are not done
    std::vector<BadSample> bad;
    std::exception_ptr error;
  };

  const LoaderOptions options;
  const int devices;
  const DeviceEdits edits;
  const BatchShape batch;
  const uint64_t fingerprint;
  Quarantine quarantine;
  RowFiller filler;
  Mutex mutex;
  CondVar work_came, work_ended;
  std::deque<Call*> calls GUARDED_BY(mutex);                          // with rows that nobody took
  std::vector<std::unique_ptr<RowWorker>> workers GUARDED_BY(mutex);  // of callers, between calls
  bool closed GUARDED_BY(mutex) = false;
  std::vector<std::jthread> threads;

  Impl(const Source& source, const AugmentSpec& augment, const LoaderOptions& loader,
       const RemoteFillerOptions& with)
      : options(plain_options(loader)),
        devices(with.devices),
        edits(with.edits),
        batch(batch_layout(source, augment, options, edits).shape()),
        fingerprint(rows_fingerprint(source, augment, options, devices, edits)),
        quarantine(source, options),
        filler(source, augment, options, devices, quarantine, edits) {
    threads = start_threads("a helper's rows", with.threads - 1, [this](int64_t) { serve(); });
  }

  ~Impl() {
    {
      MutexLock lock(mutex);
      closed = true;
    }
    work_came.notify_all();
    threads.clear();
  }

  void check(const RowRange& range, size_t bytes) const {
    const int together = filler.rows_together();
    const bool is_there = range.step >= 0 && range.device >= 0 && range.device < devices &&
                          range.rows >= 1 && range.first_row >= 0 &&
                          int64_t{range.first_row} + range.rows <= batch.rows &&
                          range.first_row % together == 0 && range.rows % together == 0;
    if (!is_there) {
      throw std::invalid_argument(
          "RemoteFiller: rows " + std::to_string(range.first_row) + " + " +
          std::to_string(range.rows) + " of device " + std::to_string(range.device) + ", step " +
          std::to_string(range.step) + ": the feed has " + std::to_string(devices) +
          " devices with " + std::to_string(batch.rows) + " rows" +
          (together > 1 ? ", mixed in pairs" : ""));
    }
    const size_t expected = stoker::message_bytes(batch, range.rows);
    if (bytes == expected) return;
    throw std::invalid_argument("RemoteFiller: a message of " + std::to_string(bytes) +
                                " bytes, must be " + std::to_string(expected));
  }

  std::vector<uint8_t> fill(const RowRange& range, std::span<std::byte> message) {
    check(range, message.size());
    Call call;
    call.position = filler.position(range.step, range.device);
    call.position.first_row = range.first_row;
    call.slab = begin_message(message, batch, range, fingerprint);
    call.rows = call.left = range.rows;
    const int together = filler.rows_together();
    const int pieces = kPiecesPerThread * (1 + static_cast<int>(threads.size()));
    call.piece = std::max(1, range.rows / together / pieces) * together;
    const auto ahead = filler.source().storage().look_ahead(samples_of(call));
    MutexLock lock(mutex);
    // The caller works, too: a single thread needs no other, which would have to be woken.
    std::unique_ptr<RowWorker> worker = take_worker();
    calls.push_back(&call);
    work_came.notify_all();
    while (call.next < call.rows) fill_piece(call, *worker);
    workers.push_back(std::move(worker));
    while (call.left > 0) work_ended.wait(lock);
    if (call.error) std::rethrow_exception(call.error);
    std::sort(call.bad.begin(), call.bad.end(),
              [](const BadSample& a, const BadSample& b) { return a.row < b.row; });
    return pack_bad_samples(call.bad);
  }

  // For a source in a store, which fetches them before they are read.
  SampleSequence samples_of(const Call& call) const {
    const Sampler& sampler = filler.sampler();
    return [&sampler, key = sampler.key(call.position.epoch), position = call.position,
            rows = call.rows, row = 0](SampleId& id) mutable {
      if (row == rows) return NextSample::end;
      id =
          sampler.row(key, position.step_in_epoch, position.replica, position.first_row + row++).id;
      return NextSample::found;
    };
  }

  void serve() {
    RowWorker worker(filler);
    MutexLock lock(mutex);
    for (;;) {
      while (!closed && calls.empty()) work_came.wait(lock);
      if (closed) return;
      fill_piece(*calls.front(), worker);
    }
  }

  std::unique_ptr<RowWorker> take_worker() REQUIRES(mutex) {
    if (workers.empty()) return std::make_unique<RowWorker>(filler);
    std::unique_ptr<RowWorker> worker = std::move(workers.back());
    workers.pop_back();
    return worker;
  }

  // REQUIRES: rows of the call that nobody took. The mutex is not held while they are filled.
  void fill_piece(Call& call, RowWorker& worker) REQUIRES(mutex) {
    const int first = call.next, count = std::min(call.piece, call.rows - first);
    call.next += count;
    if (call.next == call.rows) calls.erase(std::find(calls.begin(), calls.end(), &call));
    std::vector<BadSample> bad;
    worker.bad_samples = &bad;
    std::exception_ptr error;
    mutex.unlock();
    try {
      filler.fill(worker, call.slab, call.position, first, count);
    } catch (...) {
      error = std::current_exception();
    }
    mutex.lock();
    worker.bad_samples = nullptr;
    call.bad.insert(call.bad.end(), bad.begin(), bad.end());
    if (error) call.error = error;
    call.left -= count;
    if (call.left == 0) work_ended.notify_all();
  }
};

RemoteFiller::RemoteFiller(const Source& source, const AugmentSpec& augment,
                           const LoaderOptions& loader, const RemoteFillerOptions& options) {
  if (options.threads < 1) {
    throw InvalidField("RemoteFillerOptions", "threads",
                       " is " + std::to_string(options.threads) + ", must be at least 1");
  }
  impl_ = std::make_unique<Impl>(source, augment, loader, options);
}
RemoteFiller::~RemoteFiller() = default;
uint64_t RemoteFiller::fingerprint() const { return impl_->fingerprint; }
size_t RemoteFiller::message_bytes(int rows) const {
  return stoker::message_bytes(impl_->batch, rows);
}
std::vector<uint8_t> RemoteFiller::fill(const RowRange& range, std::span<std::byte> message) {
  return impl_->fill(range, message);
}

}  // namespace stoker
