// Fills one row of a step, from its sample to its place in the slab. Only this code defines what a
// row is; the graph, the inline mode and the I/O threads call it. It plans rows, and has them made:
//
//   SampleReader   reads the sample: a decoded picture, pieces of its file, or all of it
//   RowMaker       makes u8 pixels of it, and mixes them
//   RowFaults      reports a bad sample, and puts a substitute into its row
//   RowWriter      knows where the row lies; digests and converts it
//
// Owner: Loader, one. Threads: every method from any thread, each row by one thread. If rows are
// mixed, partners (rows 2k and 2k + 1) go together: `first` and `count` are even in every call.
// Errors: a bad sample becomes a substitute with weight 0 and a line for the quarantine; only the
// environment (no memory) throws.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pipeline/augment.h"
#include "pipeline/loader_types.h"
#include "pipeline/order/sampler.h"
#include "pipeline/row/device_edits.h"
#include "pipeline/row/quarantine.h"
#include "pipeline/row/row_faults.h"
#include "pipeline/row/row_maker.h"
#include "pipeline/row/row_worker.h"
#include "pipeline/row/row_writer.h"
#include "pipeline/row/sample_reader.h"
#include "pipeline/source.h"
#include "staging/pinned_ring.h"
#include "staging/stage_stats.h"
#include "staging/tracer.h"

namespace stoker {

// The memory of each RowWorker: its own, and what all may have in addition, one after the other.
// Without a budget it is not bound.
struct WorkerMemory {
  MemoryBudget* budget = nullptr;  // outlives the workers
  int64_t own = 0;
};

class RowFiller {
 public:
  // source and quarantine must outlive the filler. `edits`: what the devices do; if there are any,
  // slabs have a place for them. Throws what Sampler and AugmentSpec throw.
  RowFiller(const Source& source, const AugmentSpec& augment, const LoaderOptions& options,
            int devices, Quarantine& quarantine, const DeviceEdits& edits = {});
  RowFiller(const RowFiller&) = delete;
  RowFiller& operator=(const RowFiller&) = delete;

  const Sampler& sampler() const { return sampler_; }
  const Source& source() const { return source_; }
  const AugmentSpec& augment() const { return augment_; }
  const AugmentSpec& worker_augment() const { return worker_augment_; }  // what RowWorkers do of it
  const DecodeOptions& decode() const { return decode_; }
  // Before there are workers.
  void use_memory(const WorkerMemory& memory) { memory_ = memory; }
  const WorkerMemory& memory() const { return memory_; }
  Tracer* tracer() const { return tracer_; }  // or null
  SampleReader& reader() { return reader_; }
  const SampleReader& reader() const { return reader_; }
  const AnnotationColumns& annotations() const { return rows_[0]->annotations; }
  // As AnnotationColumns has them, of rows of all shapes.
  int64_t full_rows() const;
  int64_t objects_left_out() const;
  // `batch`: counted over all epochs, steps * parts + part.
  BatchPosition position(Step batch, int device) const;
  // The samples whose pictures go into a row beside its own; -1: no more.
  std::array<SampleId, kMaxPictures - 1> partners(const EpochKey& epoch,
                                                  const BatchPosition& position, int row) const;
  size_t row_bytes() const;  // u8 pixels of one row of the largest shape, all views

  // Writes the id, the weight and the repeat index of rows [first, first + count) into the slab.
  void plan(Slab& slab, const BatchPosition& position, int first, int count) const;
  // Fills planned rows; sample i of `samples` belongs to row first + i.
  void fill(RowWorker& worker, Slab& slab, const BatchPosition& position, int first,
            std::span<const SampleBytes> samples);
  // Plans, reads and fills rows in one call.
  void fill(RowWorker& worker, Slab& slab, const BatchPosition& position, int first, int count);
  // Does the same until the first row (or pair of rows, if they are mixed) whose sample is not in
  // memory (Source::read_cached). Returns how many were filled.
  int fill_cached(RowWorker& worker, Slab& slab, const BatchPosition& position, int first,
                  int count);
  // Takes rows that another filler with the same arguments made, as u8 pixels: row i of `made`
  // becomes row first + i. `bad`: the bad samples among them.
  void take(Slab& slab, const BatchPosition& position, int first, int count, const Slab& made,
            const std::vector<BadSample>& bad);
  // Whether pictures come as files: their own or further ones.
  bool reads_files() const;
  int rows_together() const { return rows_[0]->writer.rows_together(); }  // rows are a multiple
  int64_t worker_file_bytes() const;  // upper bound of the buffers of a worker that reads files
  // Fills the header. Call it after the last row and before the commit.
  void finish(Slab& slab, const BatchPosition& position) const;

  StageStats& decode_stats() { return decode_stats_; }  // items: rows filled

 private:
  // Whatever depends on the size of a step's rows.
  struct Rows {
    Rows(RowFiller& filler, const AugmentSpec& augment, const LoaderOptions& options,
         const DeviceEdits& edits);
    const Size size;
    const AnnotationColumns annotations;
    const RowWriter writer;
    const RowMaker maker;
    const RowFaults faults;
  };
  const Rows& rows_at(const BatchPosition& position) const {
    return *rows_[static_cast<size_t>(position.shape)];
  }
  // Calls `make`, which reads or makes rows, within the memory of the worker. If that is not
  // enough, waits for more and calls it again. A sample for which all of the memory is not enough
  // is added to RowWorker::refused first; `make` must do without it then. Throws OverBudget if the
  // feed ends while it waits.
  template <typename Make>
  void within_memory(RowWorker& worker, const Make& make) const;
  void fill_raw(RowWorker& worker, Slab& slab, const BatchPosition& position, int first, int count);
  void fill_rows(RowWorker& worker, Slab& slab, const BatchPosition& position, int first,
                 std::span<const SampleBytes> samples);
  // `next`: the bytes of the row that will be filled after this one, if they are in memory.
  void fill_row(RowWorker& worker, Slab& slab, const BatchPosition& position, int row,
                const SampleBytes& given, std::span<const uint8_t> next);
  DecodeStatus write_varying(RowWorker& worker, Slab& slab, const BatchPosition& position, int row,
                             SampleId id) const;
  void trace_row(const RowWorker& worker, const BatchPosition& position, SampleId id,
                 int64_t begin_ns, int64_t begin_cpu_ns);

  const Source& source_;
  const AugmentSpec augment_;
  const AugmentSpec worker_augment_;
  const DecodeOptions decode_;
  Tracer* const tracer_;
  const int first_replica_;  // replica number of this process's device 0
  const int all_replicas_;   // of a part, in all processes
  const int parts_;          // of a step
  const int64_t first_epoch_offset_;
  const SampleEncoding encoding_;
  const Sampler sampler_;
  Quarantine& quarantine_;
  WorkerMemory memory_;
  SampleReader reader_;
  const VaryingColumns varying_;
  std::vector<std::unique_ptr<const Rows>> rows_;  // one for each shape of steps; constant
  StageStats decode_stats_;
};

}  // namespace stoker
