#include "pipeline/row/row_maker.h"

#include <algorithm>

namespace stoker {
namespace {

// REQUIRES: the source has all pictures (check_loader).
std::vector<size_t> places_of_pictures(const Source& source, const AugmentSpec& augment) {
  std::vector<size_t> places;
  for (const AugmentView& view : augment.more_views) {
    const auto found = std::ranges::find(source.pictures(), view.picture, &PictureInfo::name);
    places.push_back(static_cast<size_t>(found - source.pictures().begin()));
  }
  return places;
}

}  // namespace

RowMaker::RowMaker(const Source& source, const AugmentSpec& augment, const LoaderOptions& options,
                   const DeviceEdits& edits, SampleReader& reader, const RowWriter& writer,
                   const AnnotationColumns& annotations, const Sampler& sampler)
    : source_(source),
      augment_(augment),
      edits_(edits),
      pictures_(augment.has_pictures() ? places_of_pictures(source, augment)
                                       : std::vector<size_t>()),
      seed_(options.seed),
      encoding_(source.encoding()),
      raw_size_(source.raw_size()),
      reader_(reader),
      writer_(writer),
      annotations_(annotations),
      sampler_(sampler) {}

// The rows of the sample's own picture.
std::span<const MutableImageView> RowMaker::own_outs(const RowWorker& worker) const {
  return std::span(worker.outs).first(worker.outs.size() - pictures_.size());
}

// Draws may depend on what lies on the picture, so it is read first.
DecodeStatus RowMaker::read_annotations(RowWorker& worker, SampleId id,
                                        std::span<const uint8_t> bytes) const {
  if (!annotations_.any()) return {};
  const ReadStatus read = source_.read_annotations(id, bytes, worker.annotated.annotations);
  if (read.ok) return {};
  return {DecodeCode::corrupt, -1, "annotation: " + read.message};
}

DecodeStatus RowMaker::write_annotations(RowWorker& worker, RowNote& note) const {
  if (!annotations_.any()) return {};
  return annotations_.write(worker.annotated.annotations, nullptr, worker.annotated,
                            worker.augmenter.draws(), worker.annotation_outs, note);
}

DecodeStatus RowMaker::make_combined(RowWorker& worker, const SampleBytes& sample, int64_t epoch,
                                     SampleId id, RowNote& note) const {
  CombinedRow& combined = *worker.combined;
  const CombinedRow::Key key{repeat_seed(seed_, note.repeat_index), epoch, id};
  DecodeStatus status = combined.make(worker.augmenter, reader_, key, sample, worker.outs[0], note);
  if (!status.ok()) return status;
  return annotations_.write(combined.annotations(), combined.labels(), worker.annotated,
                            combined.draws(), worker.annotation_outs, note);
}

bool RowMaker::make_of_part(RowWorker& worker, const SampleBytes& sample, int64_t epoch,
                            SampleId id, RowNote& note) const {
  return read_annotations(worker, id, {}).ok() &&
         make_pixels_of_part(worker, sample, epoch, id, note) &&
         make_pictures(worker, sample, epoch, id, note).ok() &&
         write_annotations(worker, note).ok();
}

DecodeStatus RowMaker::make_pictures(RowWorker& worker, const SampleBytes& sample, int64_t epoch,
                                     SampleId id, RowNote& note) const {
  const uint64_t seed = repeat_seed(seed_, note.repeat_index);
  for (size_t i = 0; i < pictures_.size(); ++i) {
    const PictureInfo& picture = source_.pictures()[pictures_[i]];
    const std::span<const uint8_t> bytes = sample.pictures[pictures_[i]].bytes;
    const MutableImageView out = worker.outs[1 + i];
    const auto view = static_cast<int>(1 + i);
    DecodeStatus status;
    if (picture.encoding == SampleEncoding::image_file) {
      status = worker.augmenter.file_picture_row(bytes, seed, epoch, id, view, out,
                                                 note.picture_sizes[i]);
    } else {
      const bool planar = picture.encoding == SampleEncoding::raw_planar;
      note.picture_sizes[i] = picture.raw_size;
      status =
          worker.augmenter.raw_row(bytes, planar, picture.raw_size, seed, epoch, id, out, {}, view);
    }
    if (status.ok()) continue;
    status.message = "picture '" + picture.name + "': " + status.message;
    return status;
  }
  return {};
}

DecodeStatus RowMaker::make(RowWorker& worker, const SampleBytes& sample, int64_t epoch,
                            SampleId id, RowNote& note, std::span<const uint8_t> next) const {
  if (worker.combined) return make_combined(worker, sample, epoch, id, note);
  // Rows of raw pixels take so little time that passing statuses on shows.
  if (!annotations_.any() && pictures_.empty()) {
    return make_pixels(worker, sample, epoch, id, note, next);
  }
  DecodeStatus status = read_annotations(worker, id, sample.bytes);
  if (status.ok()) status = make_pixels(worker, sample, epoch, id, note, next);
  if (status.ok() && !pictures_.empty()) {
    status = make_pictures(worker, sample, epoch, id, note);
  }
  return status.ok() ? write_annotations(worker, note) : status;
}

bool RowMaker::make_pixels_of_part(RowWorker& worker, const SampleBytes& sample, int64_t epoch,
                                   SampleId id, RowNote& note) const {
  const uint64_t seed = repeat_seed(seed_, note.repeat_index);
  Augmenter& augmenter = worker.augmenter;
  if (sample.is_decoded()) {
    note.source = sample.decoded.source;
    return augmenter.decoded_row(sample.decoded, seed, epoch, id, worker.outs[0]);
  }
  const SeekUse before = augmenter.seek_use();
  const bool is_made = augmenter.file_pieces(sample.pieces, seed, epoch, id, own_outs(worker),
                                             note.source, sample.seek_index);
  reader_.was_decoded(id, sample, augmenter.seek_use() - before, {});
  return is_made;
}

DecodeStatus RowMaker::make_pixels(RowWorker& worker, const SampleBytes& sample, int64_t epoch,
                                   SampleId id, RowNote& note,
                                   std::span<const uint8_t> next) const {
  const uint64_t seed = repeat_seed(seed_, note.repeat_index);
  if (encoding_ == SampleEncoding::image_file) {
    return make_of_file(worker, sample, seed, epoch, id, note);
  }
  note.source = raw_size_;
  const bool planar = encoding_ == SampleEncoding::raw_planar;
  const auto make_view = [&](size_t view, std::span<const uint8_t> ahead) {
    return worker.augmenter.raw_row(sample.bytes, planar, raw_size_, seed, epoch, id,
                                    worker.outs[view], ahead, static_cast<int>(view));
  };
  DecodeStatus status = make_view(0, next);
  for (size_t view = 1; view < own_outs(worker).size() && status.ok(); ++view) {
    status = make_view(view, {});
  }
  return status;
}

DecodeStatus RowMaker::make_of_file(RowWorker& worker, const SampleBytes& sample, uint64_t seed,
                                    int64_t epoch, SampleId id, RowNote& note) const {
  Augmenter& augmenter = worker.augmenter;
  const SeekUse before = augmenter.seek_use();
  const DecodeStatus status = augmenter.file_views(sample.bytes, seed, epoch, id, own_outs(worker),
                                                   note.source, sample.seek_index);
  reader_.was_decoded(id, sample, augmenter.seek_use() - before, augmenter.recorded_index());
  return status;
}

// The same draws as those of the row's steps.
void RowMaker::note_erasing(RowWorker& worker, Slab& slab, int64_t epoch, int row) const {
  RowEdit& edit = slab.edits[row] = {};
  const RowNote& note = note_of(slab, row);
  if (!edits_.erases || note.pixels_of < 0) return;
  const uint64_t seed = repeat_seed(seed_, note.repeat_index);
  const auto erasing = draw_erasing(*last_erasing(augment_.stages), augment_.output, seed, epoch,
                                    note.pixels_of, worker.erasing);
  if (erasing) set_erasing(*erasing, edit);
}

// A bad sample is not mixed into anything, and nothing into its substitute, whose row does not
// count.
void RowMaker::mix(RowWorker& worker, Slab& slab, const BatchPosition& position, int first) const {
  const bool paired = sampler_.paired(sampler_.key(position.epoch), position.step_in_epoch,
                                      position.replica, position.first_row + first) &&
                      !note_of(slab, first).bad && !note_of(slab, first + 1).bad;
  MixRow rows[2];
  for (const int i : {0, 1}) {
    const int row = first + i, partner = first + 1 - i;
    rows[i] = {writer_.pixels(worker, slab, row), paired ? mix_of(slab, position, row) : MixDraw{}};
    const bool mixed = rows[i].draw.kind != MixKind::none;
    note_of(slab, row).mix = {rows[i].draw, mixed ? slab.ids[partner] : -1};
    writer_.set_mix(slab, row, slab.labels[mixed ? partner : row], rows[i].draw.own_share);
  }
  if (edits_.mixes) {
    for (const int i : {0, 1}) set_mixing(rows[i].draw, slab.edits[first + i]);
  } else {
    mix_rows(augment_.output, rows[0], rows[1], worker.mix_scratch);
  }
}

MixDraw RowMaker::mix_of(const Slab& slab, const BatchPosition& position, int row) const {
  if (augment_.mix.per_batch) {
    return draw_mix(augment_.mix, augment_.output, seed_, position.epoch, position.step_in_epoch);
  }
  const uint64_t seed = repeat_seed(seed_, note_of(slab, row).repeat_index);
  return draw_mix(augment_.mix, augment_.output, seed, position.epoch, slab.ids[row]);
}

}  // namespace stoker
