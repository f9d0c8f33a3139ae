#include "pipeline/row/row_faults.h"

#include <cstring>

#include "pipeline/random/random_key.h"

namespace stoker {
namespace {

// Draw numbers for the choice of a substitute, far from those of augmentation: a row must not
// change because the same key gets another use.
constexpr uint32_t kSubstituteDraw = 0x53554200;
constexpr int kSubstituteTries = 8;
constexpr uint8_t kMidGrey = 128;

}  // namespace

void RowFaults::report(RowWorker& worker, const BatchPosition& position, int row, SampleId id,
                       const ReadStatus& read, const DecodeStatus& decoded) const {
  BadSample bad{.step = position.step,
                .epoch = position.epoch,
                .device = position.device,
                .row = position.first_row + row,
                .finding = {id, "unreadable", -1, read.message}};
  if (read.ok) bad.finding = {id, to_string(decoded.code), decoded.byte_offset, decoded.message};
  if (worker.bad_samples) {
    worker.bad_samples->push_back(std::move(bad));
  } else {
    quarantine_.report(std::move(bad));
  }
}

void RowFaults::substitute(RowWorker& worker, int64_t epoch, SampleId id, RowNote& note) const {
  const RandomKey key(seed_, epoch, id);
  SampleBuffer buffer;
  for (uint32_t attempt = 0; attempt < kSubstituteTries; ++attempt) {
    const SampleId other = key.below(kSubstituteDraw + attempt, source_.size());
    if (other == id) continue;
    try {
      SampleBytes sample;
      sample.status = source_.read(other, buffer.file, sample.bytes);
      read_pictures(source_, other, MayWait::yes, buffer, sample);
      if (!sample.status.ok) continue;
      if (!maker_.make(worker, sample, epoch, other, note).ok()) continue;
    } catch (const OverBudget& over) {
      if (over.needed() <= worker.lease.most()) throw;  // there will be room
      worker.free_scratch();
      continue;
    }
    note.pixels_of = other;
    return;
  }
  maker_.write_no_annotations(worker);
  note.pixels_of = -1;
  note.source = {};
  for (const MutableImageView& out : worker.outs) {
    std::memset(out.data, kMidGrey, size_t{3} * static_cast<size_t>(out.width) * out.height);
  }
}

}  // namespace stoker
