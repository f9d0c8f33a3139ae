// Makes the u8 pixels of a row from the bytes of its sample: decodes, augments, and does what comes
// last, erasing and mixing, or notes it for the device (DeviceEdits). What is drawn is a function
// of (seed, epoch, sample, repeat index), so a row is the same whoever makes it.
// Owner: RowFiller. Threads: any, each row (or pair of rows, if they are mixed) by one thread.
// Errors: a sample that cannot be decoded is a status.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/augment.h"
#include "pipeline/loader_types.h"
#include "pipeline/order/sampler.h"
#include "pipeline/row/device_edits.h"
#include "pipeline/row/row_worker.h"
#include "pipeline/row/row_writer.h"
#include "pipeline/row/sample_reader.h"
#include "pipeline/source.h"

namespace stoker {

class RowMaker {
 public:
  // The reader, the writer, the annotations and the sampler outlive the maker.
  RowMaker(const Source& source, const AugmentSpec& augment, const LoaderOptions& options,
           const DeviceEdits& edits, SampleReader& reader, const RowWriter& writer,
           const AnnotationColumns& annotations, const Sampler& sampler);

  // Makes worker.outs of a part of the sample: its decoded picture, or pieces of its file. Returns
  // false if these do not do; then make() with the whole file says the rest.
  bool make_of_part(RowWorker& worker, const SampleBytes& sample, int64_t epoch, SampleId id,
                    RowNote& note) const;
  // Makes worker.outs of the whole sample. `next`: the bytes of the row that will be made after
  // this one, if they are in memory.
  DecodeStatus make(RowWorker& worker, const SampleBytes& sample, int64_t epoch, SampleId id,
                    RowNote& note, std::span<const uint8_t> next = {}) const;
  // Writes the annotations of a row that has no picture.
  void write_no_annotations(RowWorker& worker) const {
    annotations_.write_nothing(worker.annotation_outs);
  }
  // Whether anything is left to the device: then note_erasing() begins what it is told of a row.
  bool has_edits() const { return edits_.any(); }
  void note_erasing(RowWorker& worker, Slab& slab, int64_t epoch, int row) const;
  // Mixes rows `first` and first + 1 with each other, where their positions are partners.
  void mix(RowWorker& worker, Slab& slab, const BatchPosition& position, int first) const;

 private:
  DecodeStatus make_of_file(RowWorker& worker, const SampleBytes& sample, uint64_t seed,
                            int64_t epoch, SampleId id, RowNote& note) const;
  DecodeStatus make_combined(RowWorker& worker, const SampleBytes& sample, int64_t epoch,
                             SampleId id, RowNote& note) const;
  DecodeStatus make_pixels(RowWorker& worker, const SampleBytes& sample, int64_t epoch, SampleId id,
                           RowNote& note, std::span<const uint8_t> next) const;
  bool make_pixels_of_part(RowWorker& worker, const SampleBytes& sample, int64_t epoch, SampleId id,
                           RowNote& note) const;
  std::span<const MutableImageView> own_outs(const RowWorker& worker) const;
  DecodeStatus make_pictures(RowWorker& worker, const SampleBytes& sample, int64_t epoch,
                             SampleId id, RowNote& note) const;
  DecodeStatus read_annotations(RowWorker& worker, SampleId id,
                                std::span<const uint8_t> bytes) const;
  DecodeStatus write_annotations(RowWorker& worker, RowNote& note) const;
  MixDraw mix_of(const Slab& slab, const BatchPosition& position, int row) const;

  const Source& source_;
  const AugmentSpec augment_;
  const DeviceEdits edits_;
  const std::vector<size_t> pictures_;  // which of the source's the views after the first are of
  const uint64_t seed_;
  const SampleEncoding encoding_;
  const Size raw_size_;
  SampleReader& reader_;
  const RowWriter& writer_;
  const AnnotationColumns& annotations_;
  const Sampler& sampler_;
};

}  // namespace stoker
