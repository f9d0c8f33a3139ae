#include "pipeline/row/sample_reader.h"

#include "pipeline/row/loader_options.h"
#include "pipeline/row/row_worker.h"
#include "pipeline/seek_index/sample_pieces.h"

namespace stoker {

bool read_pictures(const Source& source, SampleId id, MayWait may_wait, SampleBuffer& buffer,
                   SampleBytes& out) {
  const std::span<const PictureInfo> pictures = source.pictures();
  if (pictures.empty()) return true;
  buffer.pictures.resize(pictures.size());
  for (size_t i = 0; i < pictures.size(); ++i) {
    PictureBytes& picture = buffer.pictures[i];
    picture.bytes = {};
    const ReadStatus read = source.read_picture(id, i, may_wait, picture.file, picture.bytes);
    if (!read.ok && may_wait == MayWait::no) return false;
    if (!read.ok && out.status.ok) {
      out.status = {false, "picture '" + pictures[i].name + "': " + read.message};
    }
  }
  out.pictures = buffer.pictures;
  return true;
}

SampleReader::SampleReader(const Source& source, const AugmentSpec& augment,
                           const LoaderOptions& options)
    : source_(source),
      specs_(row_specs(augment, options)),
      exif_(options.feed.decode.exif),
      seed_(options.seed),
      tracer_(options.tracer),
      seek_indexes_(source, options.feed.seek_index, options.epochs < 0 || options.epochs > 1),
      decoded_rows_(source, augment, options.feed) {}

void SampleReader::read(const Slab& slab, const BatchPosition& position, int row,
                        SampleBuffer& buffer, SampleBytes& out) {
  Span span = begin_read(slab, position, row);
  if (!read_decoded(position, span.sample, MayWait::yes, buffer, out)) {
    if (!read_pieces(slab, position, row, MayWait::yes, buffer, out)) {
      out.status = source_.read(span.sample, buffer.file, out.bytes);
    }
    decoded_rows_.was_read(span.sample);
  }
  read_pictures(source_, span.sample, MayWait::yes, buffer, out);
  end_read(span, SpanKind::read, out, stats_);
}

bool SampleReader::read_cached(const Slab& slab, const BatchPosition& position, int row,
                               SampleBuffer& buffer, SampleBytes& out) {
  Span span = begin_read(slab, position, row);
  const bool is_decoded = read_decoded(position, span.sample, MayWait::no, buffer, out);
  // If a file is in memory, its index nearly always is, too; it is a hundredth as large.
  if (!is_decoded && !read_pieces(slab, position, row, MayWait::no, buffer, out) &&
      !source_.storage().read_cached(span.sample, buffer.file, out.bytes)) {
    return false;
  }
  if (!read_pictures(source_, span.sample, MayWait::no, buffer, out)) return false;
  if (!is_decoded) decoded_rows_.was_read(span.sample);
  end_read(span, SpanKind::cached_read, out, cached_stats_);
  return true;
}

void SampleReader::read_partner(SampleId id, SampleBuffer& buffer, SampleBytes& out) {
  out = {};
  out.seek_index = seek_indexes_.read(id, buffer.seek_index).index;
  out.status = source_.read(id, buffer.file, out.bytes);
  stats_.add_items(1);
}

void SampleReader::skip(SampleId id) {
  decoded_rows_.was_read(id);
  source_.storage().will_not_read(id);
}

// Returns false, and notes what to do with the sample's file, if its picture is not kept.
bool SampleReader::read_decoded(const BatchPosition& position, SampleId id, MayWait may_wait,
                                SampleBuffer& buffer, SampleBytes& out) {
  out = {};
  decoded_rows_.reach(position.batch);
  out.decoded = decoded_rows_.read(id, may_wait, buffer.file);
  if (!out.is_decoded()) out.stamp_to_keep = decoded_rows_.stamp_to_keep(id);
  return out.is_decoded();
}

// Reads what the row shows, by the sample's index; false: the whole sample is to be read.
bool SampleReader::read_pieces(const Slab& slab, const BatchPosition& position, int row,
                               MayWait may_wait, SampleBuffer& buffer, SampleBytes& out) {
  const SampleId id = slab.ids[row];
  const StoredIndex stored = seek_indexes_.read(id, buffer.seek_index);
  out.seek_index = stored.index;
  SamplePieces pieces;
  // A row of several samples is drawn with all of them at hand.
  const AugmentSpec& augment = specs_[static_cast<size_t>(position.shape)];
  if (augment.combines() || !pieces.open(stored, exif_)) return false;
  const uint64_t seed = repeat_seed(seed_, note_of(slab, row).repeat_index);
  if (source_.annotations().objects) {
    if (!source_.read_annotations(id, {}, buffer.annotations).ok) return false;
    buffer.draws.carry(&buffer.annotations, 0);
  }
  const Box needed =
      needed_box(augment, pieces.image_size(), seed, position.epoch, id, buffer.draws);
  if (!pieces.find(needed)) return false;
  const bool is_read = pieces.read(source_, id, may_wait, buffer.file, out.pieces);
  out.stamp_is_old = !is_read && may_wait == MayWait::yes;
  return is_read;
}

void SampleReader::was_decoded(SampleId id, const SampleBytes& sample, const SeekUse& use,
                               std::span<const uint8_t> recorded_index) {
  seek_indexes_.note(id, use);
  if (!recorded_index.empty()) {
    seek_indexes_.record(id, recorded_index);
  } else if (seek_indexes_.records() && sample.stamp_is_old && use.used > 0) {
    // The file was touched or copied, and its bytes are the same.
    seek_indexes_.record(id, sample.seek_index);
  }
}

Span SampleReader::begin_read(const Slab& slab, const BatchPosition& position, int row) const {
  Span span;
  span.device = position.device;
  span.step = position.step;
  span.sample = slab.ids[row];
  if (tracer_) span.cpu_ns = thread_cpu_ns();
  span.begin_ns = steady_now_ns();
  return span;
}

void SampleReader::end_read(Span& span, SpanKind kind, const SampleBytes& sample,
                            StageStats& stats) {
  span.end_ns = steady_now_ns();
  stats.add_service(span.end_ns - span.begin_ns);
  stats.add_items(1);
  if (!tracer_) return;
  span.cpu_ns = thread_cpu_ns() - span.cpu_ns;
  span.kind = kind;
  span.bytes = static_cast<int64_t>(sample.bytes.size() + sample.pieces.read_bytes());
  tracer_->add(span);
}

}  // namespace stoker
