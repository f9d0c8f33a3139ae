// Fills one row of a step, from its sample to its place in the slab: plan, read, augment, label,
// weight, mix, note and digest. What a device does to finished rows is only noted (DeviceEdits).
// Only this code defines what a row is; the graph, the inline mode and the I/O threads call it.
// Owner: Loader, one. Threads: every method from any thread, each row by one thread. If rows are
// mixed, partners (rows 2k and 2k + 1) go together: `first` and `count` are even in every call.
// Errors: a bad sample becomes a substitute with weight 0 and a line for the quarantine; only the
// environment (no memory) throws.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/file_pieces.h"
#include "pipeline/augment.h"
#include "pipeline/cache/decoded_rows.h"
#include "pipeline/loader_types.h"
#include "pipeline/order/sampler.h"
#include "pipeline/row/device_edits.h"
#include "pipeline/row/quarantine.h"
#include "pipeline/seek_index/indexes.h"
#include "pipeline/source.h"
#include "staging/normalise.h"
#include "staging/pinned_ring.h"
#include "staging/stage_stats.h"
#include "staging/tracer.h"

namespace stoker {

// The buffers of one file, or of the small files of one ticket, are kept up to this size.
inline constexpr size_t kKeptFileBytes = size_t{1} << 20;

// The buffers for the bytes of one sample; kept for the next one.
struct SampleBuffer {
  std::vector<uint8_t> file, seek_index;
  Draws draws;  // of needed_box()

  // Frees the buffer if the last file was larger than `kept_bytes`.
  void trim(size_t kept_bytes) {
    if (file.capacity() > kept_bytes) file = {};
  }
};

class RowFiller;

// The state of one thread that fills rows; reused, keeps its scratch. Threads: one at a time.
struct RowWorker {
  explicit RowWorker(const RowFiller& filler);
  Augmenter augmenter;
  SampleBuffer file;                   // the bytes of the current sample
  SampleBuffer next_file;              // those of the sample after it, if both are read at once
  std::vector<uint8_t> pixels;         // of the current row or pair of rows, if they are converted
  std::vector<uint8_t> mix_scratch;    // of mix_rows()
  Draws erasing;                       // of draw_erasing()
  std::vector<MutableImageView> outs;  // the current row's views
  SampleTargets targets;               // of the current row
  std::vector<BadSample>* bad_samples = nullptr;  // where they go; null: to the quarantine
  bool is_plain = false;           // rows stay u8, in a slab of that form (row_message.h)
  std::vector<std::byte> message;  // of such rows, which others share
};

// Identifies the batch of a slab.
struct BatchPlace {
  Step step = 0;  // over all epochs, whole: LoaderOptions::parts of its batches have the same
  int64_t epoch = 0;
  int64_t step_in_epoch = 0;
  int device = 0;     // index into the Loader's devices
  int replica = 0;    // as the sampler counts them: part by part, over all processes
  Step batch = 0;     // over all epochs: step * parts + part, by which slabs are counted
  int first_row = 0;  // of the batch, in row 0 of the slab: not 0 where a slab is a part of a batch
};

// The bytes of a sample, or those that its row shows, and the result of reading them.
struct SampleBytes {
  ReadStatus status;
  std::span<const uint8_t> bytes;
  FilePieces pieces;                    // file_bytes is 0 unless the sample was read in pieces
  std::span<const uint8_t> seek_index;  // empty: none
  bool stamp_is_old = false;            // of the index; the file may have changed
  DecodedPicture decoded;               // what is kept of it; without pixels: its file was read
  FileStamp stamp_to_keep;              // known: its picture shall be kept
  bool is_decoded() const { return !decoded.pixels.empty(); }
  bool is_in_pieces() const { return pieces.file_bytes > 0; }
};

// One view of the rows.
struct RowView {
  Size size;
  size_t row_bytes;                      // u8 pixels
  size_t stored_bytes;                   // in a slab
  std::optional<NormaliseArgs> convert;  // none: rows stay u8
  size_t scratch_offset;                 // of a row that is converted, in the worker's memory
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
  Tracer* tracer() const { return tracer_; }  // or null
  // `batch`: counted over all epochs, steps * parts + part.
  BatchPlace place(Step batch, int device) const;
  size_t row_bytes() const { return row_bytes_; }  // u8 pixels of one row, all views

  // Writes the id, the weight and the appearance of rows [first, first + count) into the slab.
  void plan(Slab& slab, const BatchPlace& place, int first, int count) const;
  // Reads the sample of one planned row. `out` points into `buffer` or into the source's memory.
  void read(const Slab& slab, const BatchPlace& place, int row, SampleBuffer& buffer,
            SampleBytes& out);
  // Fills planned rows; sample i of `samples` belongs to row first + i.
  void fill(RowWorker& worker, Slab& slab, const BatchPlace& place, int first,
            std::span<const SampleBytes> samples);
  // Plans, reads and fills rows in one call.
  void fill(RowWorker& worker, Slab& slab, const BatchPlace& place, int first, int count);
  // Does the same until the first row (or pair of rows, if they are mixed) whose sample is not in
  // memory (Source::read_cached). Returns how many were filled.
  int fill_cached(RowWorker& worker, Slab& slab, const BatchPlace& place, int first, int count);
  // Takes rows that another filler with the same arguments made, as u8 pixels: row i of `made`
  // becomes row first + i. `bad`: the bad samples among them.
  void take(Slab& slab, int first, int count, const Slab& made, const std::vector<BadSample>& bad);
  // Says that an announced sample will not be read.
  void pass_over(SampleId id) {
    decoded_rows_.was_read(id);
    source_.will_not_read(id);
  }
  int rows_together() const { return mixes_ ? 2 : 1; }  // a call's rows are a multiple of this
  int64_t worker_file_bytes() const;  // upper bound of the buffers of a worker that reads files
  // Fills the header. Call it after the last row and before the commit.
  void finish(Slab& slab, const BatchPlace& place) const;

  StageStats& read_stats() { return read_stats_; }                // items: samples read
  StageStats& cached_read_stats() { return cached_read_stats_; }  // those read by fill_cached()
  StageStats& decode_stats() { return decode_stats_; }            // items: rows filled
  const SeekIndexes& seek_indexes() const { return seek_indexes_; }
  const DecodedRows& decoded_rows() const { return decoded_rows_; }
  DecodedRows& decoded_rows() { return decoded_rows_; }

 private:
  // Returns false if the sample is not in memory; nothing was read then.
  bool read_cached(const Slab& slab, const BatchPlace& place, int row, SampleBuffer& buffer,
                   SampleBytes& out);
  bool read_decoded(const BatchPlace& place, SampleId id, MayWait may_wait, SampleBuffer& buffer,
                    SampleBytes& out);
  // Reads what the row shows, by the sample's index; false: the whole sample is to be read.
  bool read_pieces(const Slab& slab, const BatchPlace& place, int row, MayWait may_wait,
                   SampleBuffer& buffer, SampleBytes& out);
  Span begin_read(const Slab& slab, const BatchPlace& place, int row) const;
  void end_read(Span& span, SpanKind kind, const SampleBytes& sample, StageStats& stats);
  void fill_raw(RowWorker& worker, Slab& slab, const BatchPlace& place, int first, int count);
  void trace_row(const RowWorker& worker, const BatchPlace& place, SampleId id, int64_t begin_ns,
                 int64_t begin_cpu_ns);
  // `next`: the bytes of the row that will be filled after this one, if they are in memory.
  void fill_row(RowWorker& worker, Slab& slab, const BatchPlace& place, int row,
                const SampleBytes& given, std::span<const uint8_t> next);
  uint8_t* pixels_of(RowWorker& worker, Slab& slab, int row, size_t view = 0) const;
  void mix_pair(RowWorker& worker, Slab& slab, const BatchPlace& place, int first) const;
  MixDraw mix_of(const Slab& slab, const BatchPlace& place, int row) const;
  RowEdit erasing_of(RowWorker& worker, int64_t epoch, const RowNote& note) const;
  // Takes the digest of a row whose u8 pixels are final, and converts them.
  void complete(RowWorker& worker, Slab& slab, int row) const;
  void read_targets(RowWorker& worker, Slab& slab, int row, const SampleBytes& sample) const;
  // Fill worker.outs, the row's views.
  void substitute(RowWorker& worker, int64_t epoch, SampleId id, RowNote& note);
  DecodeStatus augment_sample(RowWorker& worker, const SampleBytes& sample, int64_t epoch,
                              SampleId id, RowNote& note, std::span<const uint8_t> next);
  bool augment_decoded(RowWorker& worker, const SampleBytes& sample, int64_t epoch, SampleId id,
                       RowNote& note);
  bool augment_pieces(RowWorker& worker, const SampleBytes& sample, int64_t epoch, SampleId id,
                      RowNote& note);
  DecodeStatus augment_file(RowWorker& worker, const SampleBytes& sample, int64_t epoch,
                            SampleId id, RowNote& note);
  std::byte* stored_row(const Slab& slab, size_t view, int row, bool is_plain = false) const;
  void report(RowWorker& worker, const BatchPlace& place, int row, SampleId id,
              const SampleBytes& sample, const DecodeStatus& status);

  const Source& source_;
  const AugmentSpec augment_;
  const DeviceEdits edits_;
  const AugmentSpec worker_augment_;
  const DecodeOptions decode_;
  const uint64_t seed_;
  const bool digests_;
  const bool mixes_;
  Tracer* const tracer_;
  const int first_replica_;  // replica number of this process's device 0
  const int all_replicas_;   // of a part, in all processes
  const int parts_;          // of a step
  const int64_t first_epoch_offset_;
  const SampleEncoding encoding_;
  const Size raw_size_;
  const std::vector<RowView> views_;
  const size_t row_bytes_;                  // u8 pixels of all views of a row
  const std::vector<size_t> target_bytes_;  // of a row, for each of the source's columns
  const Sampler sampler_;
  Quarantine& quarantine_;
  SeekIndexes seek_indexes_;
  DecodedRows decoded_rows_;
  StageStats read_stats_;
  StageStats cached_read_stats_;
  StageStats decode_stats_;
};

}  // namespace stoker
