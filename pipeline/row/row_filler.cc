#include "pipeline/row/row_filler.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "pipeline/files/digest.h"
#include "pipeline/random/random_key.h"
#include "pipeline/row/loader_options.h"
#include "pipeline/seek_index/sample_pieces.h"

namespace stoker {
namespace {

// Draw numbers for the choice of a substitute, far from those of augmentation: a row must not
// change because the same key gets another use.
constexpr uint32_t kSubstituteDraw = 0x53554200;
constexpr int kSubstituteTries = 8;
constexpr uint8_t kMidGrey = 128;

std::vector<RowView> views_of(const AugmentSpec& augment, const std::optional<RowFormat>& format) {
  std::vector<RowView> views;
  size_t scratch = 0;
  for (int number = 0; number < augment.views(); ++number) {
    const Size size = augment.view(number).output;
    const size_t bytes = size_t{3} * static_cast<size_t>(size.width) * size.height;
    RowView view{size, bytes, bytes, {}, scratch};
    if (format) {
      view.stored_bytes = bytes * value_bytes(format->type);
      view.convert = normalise_args({.height = size.height,
                                     .width = size.width,
                                     .type = format->type,
                                     .order = format->order,
                                     .mean = format->mean,
                                     .stddev = format->stddev});
    }
    scratch += bytes;
    views.push_back(view);
  }
  return views;
}

size_t scratch_bytes_of(const std::vector<RowView>& views) {
  return views.back().scratch_offset + views.back().row_bytes;
}

std::vector<size_t> bytes_of_columns(const Source& source) {
  std::vector<size_t> bytes;
  for (const TargetColumn& column : source.targets()) {
    bytes.push_back(static_cast<size_t>(column.bytes()));
  }
  return bytes;
}

uint64_t joined_digest(uint64_t first, uint64_t second) {
  const uint64_t both[2] = {first, second};
  return pixel_digest({reinterpret_cast<const uint8_t*>(both), sizeof(both)});
}

RowNote* note_of(Slab& slab, int row) { return reinterpret_cast<RowNote*>(slab.notes) + row; }
const RowNote* note_of(const Slab& slab, int row) {
  return reinterpret_cast<const RowNote*>(slab.notes) + row;
}

}  // namespace

RowWorker::RowWorker(const RowFiller& filler)
    : augmenter(filler.worker_augment(), filler.decode()) {
  augmenter.keep_marks(filler.tracer() != nullptr);
  if (filler.seek_indexes().records()) augmenter.record_places();
}

RowFiller::RowFiller(const Source& source, const AugmentSpec& augment, const LoaderOptions& options,
                     int devices, Quarantine& quarantine, const DeviceEdits& edits)
    : source_(source),
      augment_(augment),
      edits_(edits),
      worker_augment_(without(augment, edits)),
      decode_(options.feed.decode),
      seed_(options.seed),
      digests_(options.digests),
      mixes_(augment.mix.on()),
      tracer_(options.tracer),
      first_replica_(options.rank * devices),
      all_replicas_(options.world * devices),
      parts_(options.parts),
      first_epoch_offset_(options.first_epoch_offset),
      encoding_(source.encoding()),
      raw_size_(source.raw_size()),
      views_(views_of(augment, options.format)),
      row_bytes_(scratch_bytes_of(views_)),
      target_bytes_(bytes_of_columns(source)),
      sampler_(sampler_options(source, options, devices)),
      quarantine_(quarantine),
      seek_indexes_(source, options.feed.seek_index, options.epochs < 0 || options.epochs > 1),
      decoded_rows_(source, worker_augment_, options.feed) {}

BatchPlace RowFiller::place(Step batch, int device) const {
  const int64_t steps = sampler_.steps_per_epoch();
  const Step step = batch / parts_;
  const auto part = static_cast<int>(batch % parts_);
  return {step,
          step / steps + first_epoch_offset_,
          step % steps,
          device,
          part * all_replicas_ + first_replica_ + device,
          batch};
}

void RowFiller::plan(Slab& slab, const BatchPlace& place, int first, int count) const {
  const EpochKey epoch = sampler_.key(place.epoch);
  for (int row = first; row < first + count; ++row) {
    const SampledRow sampled =
        sampler_.row(epoch, place.step_in_epoch, place.replica, place.first_row + row);
    slab.ids[row] = sampled.id;
    slab.weights[row] = sampled.weight;
    new (note_of(slab, row)) RowNote{.appearance = sampled.appearance};
  }
}

void RowFiller::read(const Slab& slab, const BatchPlace& place, int row, SampleBuffer& buffer,
                     SampleBytes& out) {
  Span span = begin_read(slab, place, row);
  if (!read_decoded(place, span.sample, MayWait::yes, buffer, out)) {
    if (!read_pieces(slab, place, row, MayWait::yes, buffer, out)) {
      out.status = source_.read(span.sample, buffer.file, out.bytes);
    }
    decoded_rows_.was_read(span.sample);
  }
  end_read(span, SpanKind::read, out, read_stats_);
}

bool RowFiller::read_cached(const Slab& slab, const BatchPlace& place, int row,
                            SampleBuffer& buffer, SampleBytes& out) {
  Span span = begin_read(slab, place, row);
  if (!read_decoded(place, span.sample, MayWait::no, buffer, out)) {
    // If a file is in memory, its index nearly always is, too; it is a hundredth as large.
    if (!read_pieces(slab, place, row, MayWait::no, buffer, out) &&
        !source_.read_cached(span.sample, buffer.file, out.bytes)) {
      return false;
    }
    decoded_rows_.was_read(span.sample);
  }
  end_read(span, SpanKind::cached_read, out, cached_read_stats_);
  return true;
}

// Returns false, and notes what to do with the sample's file, if its picture is not kept.
bool RowFiller::read_decoded(const BatchPlace& place, SampleId id, MayWait may_wait,
                             SampleBuffer& buffer, SampleBytes& out) {
  out = {};
  decoded_rows_.reach(place.batch);
  out.decoded = decoded_rows_.read(id, may_wait, buffer.file);
  if (!out.is_decoded()) out.stamp_to_keep = decoded_rows_.stamp_to_keep(id);
  return out.is_decoded();
}

bool RowFiller::read_pieces(const Slab& slab, const BatchPlace& place, int row, MayWait may_wait,
                            SampleBuffer& buffer, SampleBytes& out) {
  const SampleId id = slab.ids[row];
  const StoredIndex stored = seek_indexes_.read(id, buffer.seek_index);
  out.seek_index = stored.index;
  SamplePieces pieces;
  if (!pieces.open(stored, decode_.exif)) return false;
  const uint64_t seed = appearance_seed(seed_, note_of(slab, row)->appearance);
  const Box needed =
      needed_box(worker_augment_, pieces.image_size(), seed, place.epoch, id, buffer.draws);
  if (!pieces.find(needed)) return false;
  const bool is_read = pieces.read(source_, id, may_wait, buffer.file, out.pieces);
  out.stamp_is_old = !is_read && may_wait == MayWait::yes;
  return is_read;
}

Span RowFiller::begin_read(const Slab& slab, const BatchPlace& place, int row) const {
  Span span;
  span.device = place.device;
  span.step = place.step;
  span.sample = slab.ids[row];
  if (tracer_) span.cpu_ns = thread_cpu_ns();
  span.begin_ns = steady_now_ns();
  return span;
}

void RowFiller::end_read(Span& span, SpanKind kind, const SampleBytes& sample, StageStats& stats) {
  span.end_ns = steady_now_ns();
  stats.add_service(span.end_ns - span.begin_ns);
  stats.add_items(1);
  if (!tracer_) return;
  span.cpu_ns = thread_cpu_ns() - span.cpu_ns;
  span.kind = kind;
  span.bytes = static_cast<int64_t>(sample.bytes.size() + sample.pieces.read_bytes());
  tracer_->add(span);
}

void RowFiller::fill(RowWorker& worker, Slab& slab, const BatchPlace& place, int first,
                     std::span<const SampleBytes> samples) {
  const int64_t start = steady_now_ns();
  for (size_t i = 0; i < samples.size(); ++i) {
    fill_row(worker, slab, place, first + static_cast<int>(i), samples[i], {});
  }
  decode_stats_.add_service(steady_now_ns() - start);
  decode_stats_.add_items(static_cast<int64_t>(samples.size()));
}

void RowFiller::fill(RowWorker& worker, Slab& slab, const BatchPlace& place, int first, int count) {
  plan(slab, place, first, count);
  if (encoding_ == SampleEncoding::image_file) {
    SampleBytes sample;
    for (int row = first; row < first + count; ++row) {
      worker.file.trim(kKeptFileBytes);
      read(slab, place, row, worker.file, sample);
      fill(worker, slab, place, row, {&sample, 1});
    }
    return;
  }
  fill_raw(worker, slab, place, first, count);
}

int RowFiller::fill_cached(RowWorker& worker, Slab& slab, const BatchPlace& place, int first,
                           int count) {
  plan(slab, place, first, count);
  const int together = rows_together();
  SampleBytes samples[2];
  SampleBuffer* const buffers[2] = {&worker.file, &worker.next_file};
  for (int i = 0; i < count; i += together) {
    for (int j = 0; j < together; ++j) {
      buffers[j]->trim(kKeptFileBytes);
      if (!read_cached(slab, place, first + i + j, *buffers[j], samples[j])) return i;
    }
    fill(worker, slab, place, first + i, {samples, static_cast<size_t>(together)});
  }
  return count;
}

void RowFiller::fill_raw(RowWorker& worker, Slab& slab, const BatchPlace& place, int first,
                         int count) {
  // Raw samples take less time than two readings of the clock: one measurement for the whole chunk.
  const SpanTimer timer(tracer_, SpanKind::pixels, place.step, place.device,
                        SpanTimer::Cpu::measure, count);
  const int64_t start = steady_now_ns();
  SampleBytes samples[2];
  std::vector<uint8_t>* buffers[2] = {&worker.file.file, &worker.next_file.file};
  const auto read_ahead = [&](int row) {
    SampleBytes& sample = samples[row % 2];
    sample.bytes = {};
    sample.status = source_.read(slab.ids[row], *buffers[row % 2], sample.bytes);
    return sample.bytes;
  };
  read_ahead(first);
  for (int row = first; row < first + count; ++row) {
    std::span<const uint8_t> next;
    if (row + 1 < first + count) next = read_ahead(row + 1);
    fill_row(worker, slab, place, row, samples[row % 2], next);
  }
  decode_stats_.add_service(steady_now_ns() - start);
  decode_stats_.add_items(count);
  read_stats_.add_items(count);
}

DecodeStatus RowFiller::augment_sample(RowWorker& worker, const SampleBytes& sample, int64_t epoch,
                                       SampleId id, RowNote& note, std::span<const uint8_t> next) {
  if (encoding_ == SampleEncoding::image_file) {
    return augment_file(worker, sample, epoch, id, note);
  }
  const uint64_t seed = appearance_seed(seed_, note.appearance);
  const std::span<const MutableImageView> outs = worker.outs;
  Augmenter& augmenter = worker.augmenter;
  note.source = raw_size_;
  const bool planar = encoding_ == SampleEncoding::raw_planar;
  if (outs.size() == 1) {
    return augmenter.raw_row(sample.bytes, planar, raw_size_, seed, epoch, id, outs[0], next);
  }
  DecodeStatus status;
  for (size_t view = 0; view < outs.size() && status.ok(); ++view) {
    status =
        augmenter.raw_row(sample.bytes, planar, raw_size_, seed, epoch, id, outs[view],
                          view == 0 ? next : std::span<const uint8_t>{}, static_cast<int>(view));
  }
  return status;
}

DecodeStatus RowFiller::augment_file(RowWorker& worker, const SampleBytes& sample, int64_t epoch,
                                     SampleId id, RowNote& note) {
  const uint64_t seed = appearance_seed(seed_, note.appearance);
  Augmenter& augmenter = worker.augmenter;
  const SeekUse before = augmenter.seek_use();
  const DecodeStatus status = augmenter.file_views(sample.bytes, seed, epoch, id, worker.outs,
                                                   note.source, sample.seek_index);
  const SeekUse use = augmenter.seek_use() - before;
  seek_indexes_.note(id, use);
  if (!seek_indexes_.records()) return status;
  const std::span<const uint8_t> longer = augmenter.recorded_index();
  if (!longer.empty()) {
    seek_indexes_.record(id, longer);
  } else if (sample.stamp_is_old && use.used > 0) {
    // The file was touched or copied, and its bytes are the same.
    seek_indexes_.record(id, sample.seek_index);
  }
  return status;
}

bool RowFiller::augment_decoded(RowWorker& worker, const SampleBytes& sample, int64_t epoch,
                                SampleId id, RowNote& note) {
  const uint64_t seed = appearance_seed(seed_, note.appearance);
  note.source = sample.decoded.source;
  return worker.augmenter.decoded_row(sample.decoded, seed, epoch, id, worker.outs[0]);
}

bool RowFiller::augment_pieces(RowWorker& worker, const SampleBytes& sample, int64_t epoch,
                               SampleId id, RowNote& note) {
  const uint64_t seed = appearance_seed(seed_, note.appearance);
  Augmenter& augmenter = worker.augmenter;
  const SeekUse before = augmenter.seek_use();
  const bool is_made = augmenter.file_pieces(sample.pieces, seed, epoch, id, worker.outs,
                                             note.source, sample.seek_index);
  seek_indexes_.note(id, augmenter.seek_use() - before);
  return is_made;
}

void RowFiller::fill_row(RowWorker& worker, Slab& slab, const BatchPlace& place, int row,
                         const SampleBytes& given, std::span<const uint8_t> next) {
  const SampleId id = slab.ids[row];
  const bool traced = tracer_ && encoding_ == SampleEncoding::image_file;
  const int64_t begin_ns = traced ? steady_now_ns() : 0;
  const int64_t begin_cpu_ns = traced ? thread_cpu_ns() : 0;
  worker.outs.clear();
  for (size_t view = 0; view < views_.size(); ++view) {
    const Size size = views_[view].size;
    worker.outs.push_back(
        {pixels_of(worker, slab, row, view), size.width, size.height, ptrdiff_t{3} * size.width});
  }
  RowNote& note = *note_of(slab, row);  // planned: it has the appearance
  note.pixels_of = id;
  SampleBytes sample = given;
  std::vector<uint8_t> whole;
  DecodeStatus status;
  const bool is_hit = sample.is_decoded() && augment_decoded(worker, sample, place.epoch, id, note);
  const bool is_kept = sample.stamp_to_keep.is_known();
  if (is_kept) worker.augmenter.keep_decoded(decoded_rows_.form());
  const bool is_made =
      is_hit || (sample.is_in_pieces() && augment_pieces(worker, sample, place.epoch, id, note));
  const bool is_part = sample.is_decoded() || sample.is_in_pieces();
  if (is_part && !is_made) sample.status = source_.read(id, whole, sample.bytes);
  read_targets(worker, slab, row, sample);
  if (sample.status.ok && !is_made) {
    status = augment_sample(worker, sample, place.epoch, id, note, next);
  }
  decoded_rows_.count(is_hit);
  if (is_kept) {
    if (status.ok()) decoded_rows_.keep(id, sample.stamp_to_keep, worker.augmenter.decoded());
    worker.augmenter.keep_decoded(nullptr);
  }
  if (!sample.status.ok || !status.ok()) {
    note.bad = true;
    note.code = status.code;
    // A padding row repeats a sample that has its own row in this epoch, where it is reported.
    if (slab.weights[row] > 0) report(worker, place, row, id, sample, status);
    slab.weights[row] = 0;
    substitute(worker, place.epoch, id, note);
  }
  note.counts = slab.weights[row] > 0;
  if (edits_.any()) slab.edits[row] = erasing_of(worker, place.epoch, note);
  if (!mixes_) {
    complete(worker, slab, row);
  } else if (row % 2 == 1) {
    mix_pair(worker, slab, place, row - 1);
    complete(worker, slab, row - 1);
    complete(worker, slab, row);
  }
  if (traced) trace_row(worker, place, id, begin_ns, begin_cpu_ns);
}

// Returns where the u8 pixels of one of the row's views are made.
uint8_t* RowFiller::pixels_of(RowWorker& worker, Slab& slab, int row, size_t view) const {
  if (!views_[view].convert || worker.is_plain) {
    return reinterpret_cast<uint8_t*>(stored_row(slab, view, row, worker.is_plain));
  }
  const auto together = static_cast<size_t>(rows_together());
  worker.pixels.resize(row_bytes_ * together);
  return worker.pixels.data() + row_bytes_ * (static_cast<size_t>(row) % together) +
         views_[view].scratch_offset;
}

// The views after the first are the last columns.
std::byte* RowFiller::stored_row(const Slab& slab, size_t view, int row, bool is_plain) const {
  const size_t bytes = is_plain ? views_[view].row_bytes : views_[view].stored_bytes;
  const size_t offset = bytes * static_cast<size_t>(row);
  if (view == 0) return reinterpret_cast<std::byte*>(slab.images) + offset;
  const size_t first = target_bytes_.size() + (mixes_ ? kMixColumns : 0);
  return slab.targets[first + view - 1] + offset;
}

// The same draws as those of the row's steps.
RowEdit RowFiller::erasing_of(RowWorker& worker, int64_t epoch, const RowNote& note) const {
  RowEdit edit;
  if (!edits_.erases || note.pixels_of < 0) return edit;
  const uint64_t seed = appearance_seed(seed_, note.appearance);
  const auto erasing = draw_erasing(*last_erasing(augment_.stages), augment_.output, seed, epoch,
                                    note.pixels_of, worker.erasing);
  if (erasing) set_erasing(*erasing, edit);
  return edit;
}

// A bad sample is not mixed into anything, and nothing into its substitute, whose row does not
// count.
void RowFiller::mix_pair(RowWorker& worker, Slab& slab, const BatchPlace& place, int first) const {
  const bool paired =
      sampler_.paired(place.epoch, place.step_in_epoch, place.replica, place.first_row + first) &&
      !note_of(slab, first)->bad && !note_of(slab, first + 1)->bad;
  MixRow rows[2];
  for (const int i : {0, 1}) {
    const int row = first + i, partner = first + 1 - i;
    rows[i] = {pixels_of(worker, slab, row), paired ? mix_of(slab, place, row) : MixDraw{}};
    const bool mixed = rows[i].draw.kind != MixKind::none;
    note_of(slab, row)->mix = {rows[i].draw, mixed ? slab.ids[partner] : -1};
    const size_t column = target_bytes_.size();
    reinterpret_cast<int32_t*>(slab.targets[column])[row] = slab.labels[mixed ? partner : row];
    reinterpret_cast<float*>(slab.targets[column + 1])[row] = rows[i].draw.own_share;
  }
  if (edits_.mixes) {
    for (const int i : {0, 1}) set_mixing(rows[i].draw, slab.edits[first + i]);
  } else {
    mix_rows(augment_.output, rows[0], rows[1], worker.mix_scratch);
  }
}

MixDraw RowFiller::mix_of(const Slab& slab, const BatchPlace& place, int row) const {
  if (augment_.mix.per_batch) {
    return draw_mix(augment_.mix, augment_.output, seed_, place.epoch, place.step_in_epoch);
  }
  const uint64_t seed = appearance_seed(seed_, note_of(slab, row)->appearance);
  return draw_mix(augment_.mix, augment_.output, seed, place.epoch, slab.ids[row]);
}

void RowFiller::complete(RowWorker& worker, Slab& slab, int row) const {
  uint64_t& digest = note_of(slab, row)->digest;
  for (size_t number = 0; number < views_.size(); ++number) {
    const RowView& view = views_[number];
    const uint8_t* const pixels = pixels_of(worker, slab, row, number);
    if (digests_) {
      const uint64_t of_view = pixel_digest({pixels, view.row_bytes});
      digest = number == 0 ? of_view : joined_digest(digest, of_view);
    }
    if (!view.convert || worker.is_plain) continue;
    NormaliseArgs args = *view.convert;
    args.images = pixels;
    args.out = stored_row(slab, number, row);
    args.rows = 1;
    normalise_on_host(args);
  }
}

void RowFiller::read_targets(RowWorker& worker, Slab& slab, int row,
                             const SampleBytes& sample) const {
  SampleTargets& targets = worker.targets;
  targets.columns.resize(target_bytes_.size());
  for (size_t i = 0; i < target_bytes_.size(); ++i) {
    targets.columns[i] = slab.targets[i] + target_bytes_[i] * static_cast<size_t>(row);
  }
  const bool ok = sample.status.ok;
  source_.read_targets(slab.ids[row], ok ? sample.bytes : std::span<const uint8_t>{}, targets);
  slab.labels[row] = targets.label;
}

// Two spans: one ends at the augmenter's mark, the other begins there.
void RowFiller::trace_row(const RowWorker& worker, const BatchPlace& place, SampleId id,
                          int64_t begin_ns, int64_t begin_cpu_ns) {
  const int64_t end_cpu_ns = thread_cpu_ns(), end_ns = steady_now_ns();
  const Augmenter::Marks& marks = worker.augmenter.marks();
  const bool decoded = marks.decoded_ns >= begin_ns;  // else the file was bad before that
  Span span;
  span.device = place.device;
  span.step = place.step;
  span.sample = id;
  span.kind = SpanKind::decode;
  span.begin_ns = begin_ns;
  span.end_ns = decoded ? marks.decoded_ns : end_ns;
  span.cpu_ns = (decoded ? marks.decoded_cpu_ns : end_cpu_ns) - begin_cpu_ns;
  tracer_->add(span);
  if (!decoded) return;
  span.kind = SpanKind::pixels;
  span.begin_ns = marks.decoded_ns;
  span.end_ns = end_ns;
  span.cpu_ns = end_cpu_ns - marks.decoded_cpu_ns;
  tracer_->add(span);
}

void RowFiller::substitute(RowWorker& worker, int64_t epoch, SampleId id, RowNote& note) {
  const RandomKey key(seed_, epoch, id);
  std::vector<uint8_t> buffer;
  for (uint32_t attempt = 0; attempt < kSubstituteTries; ++attempt) {
    const SampleId other = key.below(kSubstituteDraw + attempt, source_.size());
    if (other == id) continue;
    SampleBytes sample;
    if (!source_.read(other, buffer, sample.bytes).ok) continue;
    if (!augment_sample(worker, sample, epoch, other, note, {}).ok()) continue;
    note.pixels_of = other;
    return;
  }
  note.pixels_of = -1;
  note.source = {};
  for (size_t view = 0; view < views_.size(); ++view) {
    std::memset(worker.outs[view].data, kMidGrey, views_[view].row_bytes);
  }
}

void RowFiller::report(RowWorker& worker, const BatchPlace& place, int row, SampleId id,
                       const SampleBytes& sample, const DecodeStatus& status) {
  const bool read = sample.status.ok;
  BadSample bad{
      .step = place.step,
      .epoch = place.epoch,
      .device = place.device,
      .row = place.first_row + row,
      .finding = {id, read ? to_string(status.code) : "unreadable", read ? status.byte_offset : -1,
                  read ? status.message : sample.status.message}};
  if (worker.bad_samples) {
    worker.bad_samples->push_back(std::move(bad));
  } else {
    quarantine_.report(std::move(bad));
  }
}

int64_t RowFiller::worker_file_bytes() const {
  return rows_together() * (int64_t{kKeptFileBytes} + seek_indexes_.largest_index_bytes());
}

void RowFiller::take(Slab& slab, int first, int count, const Slab& made,
                     const std::vector<BadSample>& bad) {
  const auto copy = [&](auto* to, const auto* from, size_t row_bytes) {
    std::memcpy(reinterpret_cast<std::byte*>(to) + row_bytes * static_cast<size_t>(first), from,
                row_bytes * static_cast<size_t>(count));
  };
  copy(slab.labels, made.labels, sizeof(int32_t));
  copy(slab.weights, made.weights, sizeof(float));
  copy(slab.ids, made.ids, sizeof(SampleId));
  copy(slab.notes, made.notes, sizeof(RowNote));
  if (edits_.any()) copy(slab.edits, made.edits, sizeof(RowEdit));
  size_t column = 0;
  for (const size_t bytes : target_bytes_) {
    copy(slab.targets[column], made.targets[column], bytes);
    ++column;
  }
  for (const TargetColumn& mixed : mix_columns()) {
    if (!mixes_) break;
    copy(slab.targets[column], made.targets[column], static_cast<size_t>(mixed.bytes()));
    ++column;
  }
  for (size_t number = 0; number < views_.size(); ++number) {
    const RowView& view = views_[number];
    const auto* pixels = number == 0
                             ? made.images
                             : reinterpret_cast<const uint8_t*>(made.targets[column + number - 1]);
    std::byte* const out = stored_row(slab, number, first);
    if (!view.convert) {
      std::memcpy(out, pixels, view.row_bytes * static_cast<size_t>(count));
      continue;
    }
    NormaliseArgs args = *view.convert;
    args.images = pixels;
    args.out = out;
    args.rows = count;
    normalise_on_host(args);
  }
  for (const BadSample& each : bad) quarantine_.report(each);
}

void RowFiller::finish(Slab& slab, const BatchPlace& place) const {
  int valid = 0;
  for (int row = 0; row < sampler_.options().rows; ++row) valid += slab.weights[row] > 0;
  *slab.header = {.step = place.step,
                  .epoch = place.epoch,
                  .step_in_epoch = place.step_in_epoch,
                  .valid = valid,
                  .ready_ns = steady_now_ns()};
}

}  // namespace stoker
