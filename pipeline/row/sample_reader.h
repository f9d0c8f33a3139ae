// Reads the sample of a row: its decoded picture if a cache has it, else those bytes of its file
// that the row shows if an index says which, else the whole file; and its further pictures. Keeps
// what is learnt on the way: seek indexes and decoded pictures. Owner: RowFiller. Threads: any.
// Errors: a sample that cannot be read is a status.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/file_pieces.h"
#include "pipeline/augment.h"
#include "pipeline/cache/decoded_rows.h"
#include "pipeline/files/file_buffer.h"
#include "pipeline/loader_types.h"
#include "pipeline/seek_index/indexes.h"
#include "pipeline/source.h"
#include "staging/pinned_ring.h"
#include "staging/stage_stats.h"
#include "staging/tracer.h"

namespace stoker {

// The buffers of one file, or of the small files of one ticket, are kept up to this size.
inline constexpr size_t kKeptFileBytes = size_t{1} << 20;

// A further picture of a sample; its buffer is kept for the next one.
struct PictureBytes {
  std::vector<uint8_t> file;
  std::span<const uint8_t> bytes;
};

// The buffers for the bytes of one sample; kept for the next one.
struct SampleBuffer {
  std::vector<uint8_t> file, seek_index;
  std::vector<PictureBytes> pictures;  // in the order of Source::pictures()
  Draws draws;                         // of needed_box()
  Annotations annotations;             // for draws that depend on them

  SampleBuffer() = default;
  SampleBuffer(SampleBuffer&&) = default;
  SampleBuffer& operator=(SampleBuffer&&) = delete;
  ~SampleBuffer() { trim(0); }

  // Frees the buffer if the last file was larger than `kept_bytes`.
  void trim(size_t kept_bytes) {
    if (file.capacity() > kept_bytes) free_file_buffer(file);
    for (PictureBytes& picture : pictures) {
      if (picture.file.capacity() <= kept_bytes) continue;
      free_file_buffer(picture.file);
      picture.bytes = {};
    }
  }
};

// Where a slab's batch is in the feed.
struct BatchPosition {
  Step step = 0;  // over all epochs, whole: LoaderOptions::parts of its batches have the same
  int64_t epoch = 0;
  int64_t step_in_epoch = 0;
  int device = 0;     // index into the Loader's devices
  int replica = 0;    // as the sampler counts them: part by part, over all processes
  Step batch = 0;     // over all epochs: step * parts + part, by which slabs are counted
  int first_row = 0;  // of the batch, in row 0 of the slab: not 0 where a slab is a part of a batch
  int shape = 0;      // of the step: an index in row_specs()
};

// The bytes of a sample, or those that its row shows, and the result of reading them.
struct SampleBytes {
  ReadStatus status;
  std::span<const uint8_t> bytes;
  std::span<const PictureBytes> pictures{};  // its further ones, whole
  FilePieces pieces;                         // file_bytes is 0 unless the sample was read in pieces
  std::span<const uint8_t> seek_index;       // empty: none
  bool stamp_is_old = false;                 // of the index; the file may have changed
  DecodedPicture decoded;   // what is kept of it; without pixels: its file was read
  FileStamp stamp_to_keep;  // known: its picture shall be kept
  bool is_decoded() const { return !decoded.pixels.empty(); }
  bool is_in_pieces() const { return pieces.file_bytes > 0; }
};

// Reads the further pictures of a sample whose own has been read. One that cannot be read makes
// `out.status` not ok. Returns false if one is not in memory, and nobody may wait for it.
bool read_pictures(const Source& source, SampleId id, MayWait may_wait, SampleBuffer& buffer,
                   SampleBytes& out);

class SampleReader {
 public:
  // `augment`: what workers do. `source` must outlive the reader.
  SampleReader(const Source& source, const AugmentSpec& augment, const LoaderOptions& options);

  // Reads the sample of one planned row. `out` points into `buffer` or into the source's memory.
  void read(const Slab& slab, const BatchPosition& position, int row, SampleBuffer& buffer,
            SampleBytes& out);
  // Returns false if the sample is not in memory; nothing was read then.
  bool read_cached(const Slab& slab, const BatchPosition& position, int row, SampleBuffer& buffer,
                   SampleBytes& out);
  // Reads the file of a sample whose picture goes into the row of another.
  void read_partner(SampleId id, SampleBuffer& buffer, SampleBytes& out);
  // Says that an announced sample will not be read.
  void skip(SampleId id);

  // Notes what the decoder did with the sample's index.
  void was_decoded(SampleId id, const SampleBytes& sample, const SeekUse& use,
                   std::span<const uint8_t> recorded_index);

  StageStats& stats() { return stats_; }                // items: samples read
  StageStats& cached_stats() { return cached_stats_; }  // those of read_cached()
  const SeekIndexes& seek_indexes() const { return seek_indexes_; }
  const DecodedRows& decoded_rows() const { return decoded_rows_; }
  DecodedRows& decoded_rows() { return decoded_rows_; }

 private:
  bool read_decoded(const BatchPosition& position, SampleId id, MayWait may_wait,
                    SampleBuffer& buffer, SampleBytes& out);
  bool read_pieces(const Slab& slab, const BatchPosition& position, int row, MayWait may_wait,
                   SampleBuffer& buffer, SampleBytes& out);
  Span begin_read(const Slab& slab, const BatchPosition& position, int row) const;
  void end_read(Span& span, SpanKind kind, const SampleBytes& sample, StageStats& stats);

  const Source& source_;
  const std::vector<AugmentSpec> specs_;  // of each shape
  const ExifPolicy exif_;
  const uint64_t seed_;
  Tracer* const tracer_;
  SeekIndexes seek_indexes_;
  DecodedRows decoded_rows_;
  StageStats stats_, cached_stats_;
};

}  // namespace stoker
