// Deals with a bad sample: reports it, and puts another sample into its row, drawn by the row's
// key, so that it is the same in every run. After eight tries the row is grey. Owner: RowFiller.
// Threads: any.
#pragma once

#include <cstdint>

#include "pipeline/row/quarantine.h"
#include "pipeline/row/row_maker.h"
#include "pipeline/row/row_worker.h"
#include "pipeline/source.h"

namespace stoker {

class RowFaults {
 public:
  // All of them outlive this.
  RowFaults(const Source& source, uint64_t seed, const RowMaker& maker, Quarantine& quarantine)
      : source_(source), seed_(seed), maker_(maker), quarantine_(quarantine) {}

  // To the worker's list of bad samples if it has one, else to the quarantine.
  void report(RowWorker& worker, const BatchPosition& position, int row, SampleId id,
              const ReadStatus& read, const DecodeStatus& decoded) const;
  // Fills worker.outs, the row's views, and notes whose pixels they are.
  void substitute(RowWorker& worker, int64_t epoch, SampleId id, RowNote& note) const;

 private:
  const Source& source_;
  const uint64_t seed_;
  const RowMaker& maker_;
  Quarantine& quarantine_;
};

}  // namespace stoker
