// Fetches the samples of a store before they are read. It knows from a SampleSequence which those
// will be, joins samples that lie near each other to one range, and asks for as many ranges at a
// time as ObjectReader finds useful, within a fixed number of bytes. A sample that nobody announced
// is fetched when it is read. Owner: a source. Threads: every method from any thread. Errors:
// read() throws the StoreError of the sample's range.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "pipeline/source/source.h"
#include "pipeline/store/object_reader.h"

namespace stoker {

// Where a sample's bytes are. Samples in one object share it.
struct StoredPlaceOfSample {
  std::shared_ptr<const StoredObject> object;  // null: nowhere, which the reader reports
  int64_t offset = 0, length = 0;
};

class SampleWindow {
 public:
  using Locate = std::function<StoredPlaceOfSample(SampleId)>;
  // `locate` is called from any thread, also at once.
  SampleWindow(std::shared_ptr<const ObjectStore> store, const StoreOptions& options,
               Locate locate);
  // REQUIRES: every LookAhead has been destroyed. In a process that was forked meanwhile, where the
  // thread that carries requests does not exist, nothing is freed.
  ~SampleWindow();
  SampleWindow(const SampleWindow&) = delete;
  SampleWindow& operator=(const SampleWindow&) = delete;

  std::unique_ptr<LookAhead> look_ahead(SampleSequence next);
  // Passes the sample's bytes to `use`, which must not keep them. Returns false, without a call, if
  // they are not here and MayWait::no, or if the sample is nowhere; else what `use` returned.
  bool read(SampleId id, MayWait may_wait,
            const std::function<bool(std::span<const uint8_t> bytes)>& use);
  // The same, and copies pieces of them; false also for a piece that is not in the sample. A store
  // is asked for whole samples, because a request costs more than the bytes that an index would
  // spare.
  bool read_pieces(SampleId id, MayWait may_wait, std::span<const BytePiece> pieces);
  int64_t bytes() const;  // at most, of samples that were announced
  StoreStats stats() const;

 private:
  void check_process() const;

  struct Impl;
  const pid_t process_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
