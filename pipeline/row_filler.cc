#include "pipeline/row_filler.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "pipeline/digest.h"
#include "pipeline/loader_options.h"
#include "pipeline/random_key.h"

namespace stoker {
namespace {

// Draw numbers for the choice of a substitute, far from those of augmentation: a row must not
// change because the same key gets another use.
constexpr uint32_t kSubstituteDraw = 0x53554200;
constexpr int kSubstituteTries = 8;
constexpr uint8_t kMidGrey = 128;

std::optional<NormaliseArgs> conversion(const AugmentSpec& augment,
                                        const std::optional<RowFormat>& format) {
  if (!format) return {};
  return normalise_args({.height = augment.output.height,
                         .width = augment.output.width,
                         .type = format->type,
                         .order = format->order,
                         .mean = format->mean,
                         .stddev = format->stddev});
}

std::vector<size_t> bytes_of_columns(const Source& source) {
  std::vector<size_t> bytes;
  for (const TargetColumn& column : source.targets()) {
    bytes.push_back(static_cast<size_t>(column.bytes()));
  }
  return bytes;
}

RowNote* note_of(Slab& slab, int row) { return reinterpret_cast<RowNote*>(slab.notes) + row; }

}  // namespace

RowFiller::RowFiller(const Source& source, const AugmentSpec& augment, const LoaderOptions& options,
                     int devices, Quarantine& quarantine)
    : source_(source),
      augment_(augment),
      decode_(options.feed.decode),
      seed_(options.seed),
      digests_(options.digests),
      tracer_(options.tracer),
      first_replica_(options.rank * devices),
      first_epoch_offset_(options.first_epoch_offset),
      encoding_(source.encoding()),
      raw_size_(source.raw_size()),
      row_bytes_(size_t{3} * augment.output.width * augment.output.height),
      target_bytes_(bytes_of_columns(source)),
      convert_(conversion(augment, options.format)),
      stored_row_bytes_(row_bytes_ * (convert_ ? value_bytes(convert_->type) : 1)),
      sampler_(sampler_options(source, options, devices)),
      quarantine_(quarantine),
      seek_indexes_(source, options.feed.seek_index) {}

BatchPlace RowFiller::place(Step step, int device) const {
  const int64_t steps = sampler_.steps_per_epoch();
  return {step, step / steps + first_epoch_offset_, step % steps, device};
}

void RowFiller::plan(Slab& slab, const BatchPlace& place, int first, int count) const {
  const int replica = first_replica_ + place.device;
  const EpochKey epoch = sampler_.key(place.epoch);
  for (int row = first; row < first + count; ++row) {
    const SampledRow sampled = sampler_.row(epoch, place.step_in_epoch, replica, row);
    slab.ids[row] = sampled.id;
    slab.weights[row] = sampled.weight;
    new (note_of(slab, row)) RowNote{.appearance = sampled.appearance};
  }
}

void RowFiller::read(const Slab& slab, const BatchPlace& place, int row, SampleBuffer& buffer,
                     SampleBytes& out) {
  Span span = begin_read(slab, place, row);
  out.bytes = {};
  out.status = source_.read(span.sample, buffer.file, out.bytes);
  seek_indexes_.read(span.sample, buffer.seek_index, out.seek_index);
  end_read(span, SpanKind::read, out, read_stats_);
}

bool RowFiller::read_cached(const Slab& slab, const BatchPlace& place, int row,
                            SampleBuffer& buffer, SampleBytes& out) {
  Span span = begin_read(slab, place, row);
  out = {};
  if (!source_.read_cached(span.sample, buffer.file, out.bytes)) return false;
  // If a file is in memory, its index nearly always is, too; it is a hundredth as large.
  seek_indexes_.read(span.sample, buffer.seek_index, out.seek_index);
  end_read(span, SpanKind::cached_read, out, cached_read_stats_);
  return true;
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
  span.bytes = static_cast<int64_t>(sample.bytes.size());
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
  SampleBytes sample;
  for (int i = 0; i < count; ++i) {
    worker.file.trim(kKeptFileBytes);
    if (!read_cached(slab, place, first + i, worker.file, sample)) return i;
    fill(worker, slab, place, first + i, {&sample, 1});
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
  std::vector<uint8_t>* buffers[2] = {&worker.file.file, &worker.next_file};
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
                                       SampleId id, MutableImageView out, RowNote& note,
                                       std::span<const uint8_t> next) {
  const uint64_t seed = appearance_seed(seed_, note.appearance);
  if (encoding_ == SampleEncoding::image_file) {
    const SeekUse before = worker.augmenter.seek_use();
    const DecodeStatus status = worker.augmenter.file_row(
        sample.bytes, seed, epoch, id, out, note.source, note.draw, sample.seek_index);
    const SeekUse after = worker.augmenter.seek_use();
    seek_indexes_.note(id, {after.used - before.used, after.refused - before.refused});
    return status;
  }
  note.source = raw_size_;
  return worker.augmenter.raw_row(sample.bytes, encoding_ == SampleEncoding::raw_planar, raw_size_,
                                  seed, epoch, id, out, note.draw, next);
}

void RowFiller::fill_row(RowWorker& worker, Slab& slab, const BatchPlace& place, int row,
                         const SampleBytes& sample, std::span<const uint8_t> next) {
  const SampleId id = slab.ids[row];
  const bool traced = tracer_ && encoding_ == SampleEncoding::image_file;
  const int64_t begin_ns = traced ? steady_now_ns() : 0;
  const int64_t begin_cpu_ns = traced ? thread_cpu_ns() : 0;
  const int width = augment_.output.width;
  uint8_t* const stored = slab.images + stored_row_bytes_ * row;
  if (convert_) worker.pixels.resize(row_bytes_);
  MutableImageView out{convert_ ? worker.pixels.data() : stored, width, augment_.output.height,
                       ptrdiff_t{3} * width};
  RowNote& note = *note_of(slab, row);  // planned: it has the appearance
  note.pixels_of = id;
  read_targets(worker, slab, row, sample);
  DecodeStatus status;
  if (sample.status.ok) {
    status = augment_sample(worker, sample, place.epoch, id, out, note, next);
  }
  if (!sample.status.ok || !status.ok()) {
    note.bad = true;
    note.code = status.code;
    // A padding row repeats a sample that has its own row in this epoch, where it is reported.
    if (slab.weights[row] > 0) report(place, row, id, sample, status);
    slab.weights[row] = 0;
    substitute(worker, place.epoch, id, out, note);
  }
  note.counts = slab.weights[row] > 0;
  if (digests_) note.digest = pixel_digest({out.data, row_bytes_});
  if (convert_) convert(worker, stored);
  if (traced) trace_row(worker, place, id, begin_ns, begin_cpu_ns);
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

void RowFiller::convert(const RowWorker& worker, uint8_t* row) const {
  NormaliseArgs args = *convert_;
  args.images = worker.pixels.data();
  args.out = row;
  args.rows = 1;
  normalise_on_host(args);
}

void RowFiller::substitute(RowWorker& worker, int64_t epoch, SampleId id, MutableImageView out,
                           RowNote& note) {
  const RandomKey key(seed_, epoch, id);
  std::vector<uint8_t> buffer;
  for (uint32_t attempt = 0; attempt < kSubstituteTries; ++attempt) {
    const SampleId other = key.below(kSubstituteDraw + attempt, source_.size());
    if (other == id) continue;
    SampleBytes sample;
    if (!source_.read(other, buffer, sample.bytes).ok) continue;
    if (!augment_sample(worker, sample, epoch, other, out, note, {}).ok()) continue;
    note.pixels_of = other;
    return;
  }
  note.pixels_of = -1;
  note.source = {};
  note.draw = {};
  std::memset(out.data, kMidGrey, row_bytes_);
}

void RowFiller::report(const BatchPlace& place, int row, SampleId id, const SampleBytes& sample,
                       const DecodeStatus& status) {
  const bool read = sample.status.ok;
  quarantine_.report(
      {.step = place.step,
       .epoch = place.epoch,
       .device = place.device,
       .row = row,
       .finding = {id, read ? to_string(status.code) : "unreadable", read ? status.byte_offset : -1,
                   read ? status.message : sample.status.message}});
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
