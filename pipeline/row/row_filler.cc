#include "pipeline/row/row_filler.h"

#include <algorithm>
#include <memory>
#include <new>

#include "pipeline/row/loader_options.h"

namespace stoker {
namespace {

// A sample that is read again, because its part did not do.
struct WholeSample {
  SampleBytes bytes;
  SampleBuffer buffer;
};

DecodeStatus too_large(const MemoryLease& lease, int64_t needed) {
  constexpr int64_t kMiB = 1 << 20;
  return {DecodeCode::too_large, -1,
          "more than " + std::to_string(needed / kMiB) +
              " MiB of memory are needed for it, and the feed has at most " +
              std::to_string(lease.most() / kMiB) + " MiB for one picture"};
}

}  // namespace

RowWorker::RowWorker(const RowFiller& of)
    : filler(of),
      lease(filler.memory().budget, filler.memory().own),
      augmenter(filler.worker_augment(), filler.decode()) {
  augmenter.keep_marks(filler.tracer() != nullptr);
  if (filler.annotations().any()) {
    augmenter.carry(&annotated.annotations, filler.annotations().keypoints());
  }
  if (filler.worker_augment().combines()) {
    combined = std::make_unique<CombinedRow>(filler.source(), filler.worker_augment(),
                                             filler.decode(), filler.annotations().options());
  } else if (filler.reader().seek_indexes().records()) {
    augmenter.record_places();
  }
}

const DecodeStatus* RowWorker::refusal() const {
  const auto found = std::ranges::find(refused, at, &Refused::id);
  return found == refused.end() ? nullptr : &found->status;
}

void RowWorker::free_scratch() {
  const LeaseScope scope(lease);
  augmenter.free_scratch();
  if (combined) {
    combined.reset();
    combined = std::make_unique<CombinedRow>(filler.source(), filler.worker_augment(),
                                             filler.decode(), filler.annotations().options());
  }
  annotated.labels = {};
  file.trim(0);
  next_file.trim(0);
}

RowFiller::RowFiller(const Source& source, const AugmentSpec& augment, const LoaderOptions& options,
                     int devices, Quarantine& quarantine, const DeviceEdits& edits)
    : source_(source),
      augment_(augment),
      worker_augment_(without(augment, edits)),
      decode_(options.feed.decode),
      tracer_(options.tracer),
      first_replica_(options.rank * devices),
      all_replicas_(options.world * devices),
      parts_(options.parts),
      first_epoch_offset_(options.first_epoch_offset),
      encoding_(source.encoding()),
      sampler_(sampler_options(source, options, devices)),
      quarantine_(quarantine),
      reader_(source, worker_augment_, options),
      varying_(source, augment, options) {
  for (const AugmentSpec& spec : row_specs(augment, options)) {
    rows_.push_back(std::make_unique<const Rows>(*this, spec, options, edits));
  }
}

RowFiller::Rows::Rows(RowFiller& filler, const AugmentSpec& augment, const LoaderOptions& options,
                      const DeviceEdits& edits)
    : size(augment.output),
      annotations(filler.source_.annotations(), options.annotations, augment.output,
                  options.feed.decode.max_pixels),
      writer(filler.source_, augment, options, annotations, filler.varying_),
      maker(filler.source_, augment, options, edits, filler.reader_, writer, annotations,
            filler.sampler_),
      faults(filler.source_, options.seed, maker, filler.quarantine_) {}

int64_t RowFiller::full_rows() const {
  int64_t count = 0;
  for (const auto& rows : rows_) count += rows->annotations.full_rows();
  return count;
}

int64_t RowFiller::objects_left_out() const {
  int64_t count = 0;
  for (const auto& rows : rows_) count += rows->annotations.objects_left_out();
  return count;
}

size_t RowFiller::row_bytes() const {
  size_t most = 0;
  for (const auto& rows : rows_) most = std::max(most, rows->writer.row_bytes());
  return most;
}

BatchPosition RowFiller::position(Step batch, int device) const {
  const int64_t steps = sampler_.steps_per_epoch();
  const Step step = batch / parts_;
  const auto part = static_cast<int>(batch % parts_);
  BatchPosition position{.step = step,
                         .epoch = step / steps + first_epoch_offset_,
                         .step_in_epoch = step % steps,
                         .device = device,
                         .replica = part * all_replicas_ + first_replica_ + device,
                         .batch = batch};
  if (rows_.size() > 1) {
    position.shape = sampler_.shape(sampler_.key(position.epoch), position.step_in_epoch);
  }
  return position;
}

void RowFiller::plan(Slab& slab, const BatchPosition& position, int first, int count) const {
  const EpochKey epoch = sampler_.key(position.epoch);
  const bool has_partners = augment_.combines();
  for (int row = first; row < first + count; ++row) {
    const SampledRow sampled =
        sampler_.row(epoch, position.step_in_epoch, position.replica, position.first_row + row);
    slab.ids[row] = sampled.id;
    slab.weights[row] = sampled.weight;
    new (&note_of(slab, row))
        RowNote{.size = rows_at(position).size, .repeat_index = sampled.repeat_index};
    if (has_partners) note_of(slab, row).partners = partners(epoch, position, row);
  }
}

std::array<SampleId, kMaxPictures - 1> RowFiller::partners(const EpochKey& epoch,
                                                           const BatchPosition& position,
                                                           int row) const {
  const int64_t place =
      sampler_.position(epoch, position.step_in_epoch, position.replica, position.first_row + row);
  return draw_partners(augment_.stages, sampler_.order(), epoch, place);
}

template <typename Make>
void RowFiller::within_memory(RowWorker& worker, const Make& make) const {
  MemoryLease& lease = worker.lease;
  worker.refused.clear();
  for (int64_t had = 0;;) {
    try {
      const LeaseScope scope(lease);
      make();
      break;
    } catch (const OverBudget& over) {
      worker.free_scratch();
      if (had == lease.most()) {
        worker.refused.push_back({worker.at, too_large(lease, over.needed())});
        continue;
      }
      // Who needs more each time shall not make the picture many times.
      had = std::min(lease.most(), std::max(over.needed(), 2 * had));
      if (!lease.wait_for(had)) throw;
    }
  }
  if (lease.is_over_own()) worker.free_scratch();
  lease.give_back();
}

void RowFiller::fill(RowWorker& worker, Slab& slab, const BatchPosition& position, int first,
                     std::span<const SampleBytes> samples) {
  for (size_t i = 0; i < samples.size(); ++i) {
    within_memory(worker, [&] {
      fill_rows(worker, slab, position, first + static_cast<int>(i), samples.subspan(i, 1));
    });
  }
}

void RowFiller::fill_rows(RowWorker& worker, Slab& slab, const BatchPosition& position, int first,
                          std::span<const SampleBytes> samples) {
  const int64_t start = steady_now_ns();
  for (size_t i = 0; i < samples.size(); ++i) {
    fill_row(worker, slab, position, first + static_cast<int>(i), samples[i], {});
  }
  decode_stats_.add_service(steady_now_ns() - start);
  decode_stats_.add_items(static_cast<int64_t>(samples.size()));
}

void RowFiller::fill(RowWorker& worker, Slab& slab, const BatchPosition& position, int first,
                     int count) {
  plan(slab, position, first, count);
  if (encoding_ != SampleEncoding::image_file) {
    fill_raw(worker, slab, position, first, count);
    return;
  }
  for (int row = first; row < first + count; ++row) {
    within_memory(worker, [&] {
      SampleBytes sample;
      worker.at = slab.ids[row];
      worker.file.trim(kKeptFileBytes);
      if (!worker.refusal()) reader_.read(slab, position, row, worker.file, sample);
      fill_rows(worker, slab, position, row, {&sample, 1});
    });
  }
}

int RowFiller::fill_cached(RowWorker& worker, Slab& slab, const BatchPosition& position, int first,
                           int count) {
  plan(slab, position, first, count);
  const int together = rows_together();
  SampleBytes samples[2];
  SampleBuffer* const buffers[2] = {&worker.file, &worker.next_file};
  bool is_cached = true;
  for (int i = 0; i < count; i += together) {
    within_memory(worker, [&] {
      for (int j = 0; j < together && is_cached; ++j) {
        worker.at = slab.ids[first + i + j];
        buffers[j]->trim(kKeptFileBytes);
        samples[j] = {};
        is_cached = worker.refusal() ||
                    reader_.read_cached(slab, position, first + i + j, *buffers[j], samples[j]);
      }
      if (!is_cached) return;
      fill_rows(worker, slab, position, first + i, {samples, static_cast<size_t>(together)});
    });
    if (!is_cached) return i;
  }
  return count;
}

void RowFiller::fill_raw(RowWorker& worker, Slab& slab, const BatchPosition& position, int first,
                         int count) {
  // Raw samples take less time than two readings of the clock: one measurement for the whole chunk.
  const SpanTimer timer(tracer_, SpanKind::pixels, position.step, position.device,
                        SpanTimer::Cpu::measure, count);
  const int64_t start = steady_now_ns();
  SampleBytes samples[2];
  SampleBuffer* buffers[2] = {&worker.file, &worker.next_file};
  const auto read_ahead = [&](int row) {
    SampleBytes& sample = samples[row % 2];
    worker.at = slab.ids[row];
    if (worker.refusal()) return (sample = {}).bytes;
    sample.bytes = {};  // else those of an earlier row, if this one cannot be read
    sample.status = source_.read(slab.ids[row], buffers[row % 2]->file, sample.bytes);
    if (augment_.has_pictures()) {
      read_pictures(source_, slab.ids[row], MayWait::yes, *buffers[row % 2], sample);
    }
    return sample.bytes;
  };
  within_memory(worker, [&] {
    read_ahead(first);
    for (int row = first; row < first + count; ++row) {
      std::span<const uint8_t> next;
      if (row + 1 < first + count) next = read_ahead(row + 1);
      fill_row(worker, slab, position, row, samples[row % 2], next);
    }
  });
  decode_stats_.add_service(steady_now_ns() - start);
  decode_stats_.add_items(count);
  reader_.stats().add_items(count);
}

void RowFiller::fill_row(RowWorker& worker, Slab& slab, const BatchPosition& position, int row,
                         const SampleBytes& given, std::span<const uint8_t> next) {
  const auto& [size, annotations, writer, maker, faults] = rows_at(position);
  const SampleId id = slab.ids[row];
  const bool traced = tracer_ && encoding_ == SampleEncoding::image_file;
  const int64_t begin_ns = traced ? steady_now_ns() : 0;
  const int64_t begin_cpu_ns = traced ? thread_cpu_ns() : 0;
  writer.begin(worker, slab, row);
  RowNote& note = note_of(slab, row);  // planned: it has the repeat index
  note.pixels_of = id;
  worker.at = id;
  const DecodeStatus* refusal = worker.refusal();
  DecodedRows& cache = reader_.decoded_rows();
  const bool is_kept = given.stamp_to_keep.is_known();
  if (is_kept) worker.augmenter.keep_decoded(cache.form());
  const bool is_part = !refusal && given.status.ok && (given.is_decoded() || given.is_in_pieces());
  const bool is_made = is_part && maker.make_of_part(worker, given, position.epoch, id, note);
  // Rarely there. A compiler clears all of an optional, which shows where rows are raw pixels.
  std::unique_ptr<WholeSample> whole;
  if (is_part && !is_made) {
    whole = std::make_unique<WholeSample>();
    whole->bytes.seek_index = given.seek_index;
    whole->bytes.status = source_.read(id, whole->buffer.file, whole->bytes.bytes);
    whole->bytes.pictures = given.pictures;
  }
  const SampleBytes& sample = whole ? whole->bytes : given;
  const ReadStatus& read = sample.status;
  source_.read_targets(id, read.ok ? sample.bytes : std::span<const uint8_t>{}, worker.targets);
  slab.labels[row] = worker.targets.label;
  DecodeStatus decoded = refusal ? *refusal : DecodeStatus{};
  if (varying_.any() && !refusal && read.ok) {
    decoded = write_varying(worker, slab, position, row, id);
  }
  if (read.ok && !is_made && decoded.ok()) {
    decoded = maker.make(worker, sample, position.epoch, id, note, next);
  }
  if (is_kept) {
    if (decoded.ok()) cache.keep(id, given.stamp_to_keep, worker.augmenter.decoded());
    worker.augmenter.keep_decoded(nullptr);
  }
  if (!read.ok || !decoded.ok()) {
    note.bad = true;
    note.code = decoded.code;
    // A padding row repeats a sample that has its own row in this epoch, where it is reported.
    if (slab.weights[row] > 0) faults.report(worker, position, row, id, read, decoded);
    slab.weights[row] = 0;
    faults.substitute(worker, position.epoch, id, note);
    varying_.write_nothing(slab, row);
  }
  cache.count(is_made && given.is_decoded());
  note.counts = slab.weights[row] > 0;
  if (maker.has_edits()) maker.note_erasing(worker, slab, position.epoch, row);
  if (rows_together() == 1) {
    writer.finish(worker, slab, row);
  } else if (row % 2 == 1) {
    maker.mix(worker, slab, position, row - 1);
    writer.finish(worker, slab, row - 1);
    writer.finish(worker, slab, row);
  }
  if (traced) trace_row(worker, position, id, begin_ns, begin_cpu_ns);
}

DecodeStatus RowFiller::write_varying(RowWorker& worker, Slab& slab, const BatchPosition& position,
                                      int row, SampleId id) const {
  const uint64_t seed = repeat_seed(sampler_.options().seed, note_of(slab, row).repeat_index);
  const std::string problem = varying_.write(worker.targets, seed, position.epoch, id, slab, row);
  if (problem.empty()) return {};
  return {DecodeCode::corrupt, -1, problem};
}

// Two spans: one ends at the augmenter's mark, the other begins there.
void RowFiller::trace_row(const RowWorker& worker, const BatchPosition& position, SampleId id,
                          int64_t begin_ns, int64_t begin_cpu_ns) {
  const int64_t end_cpu_ns = thread_cpu_ns(), end_ns = steady_now_ns();
  const Augmenter::Marks& marks = worker.augmenter.marks();
  const bool decoded = marks.decoded_ns >= begin_ns;  // else the file was bad before that
  Span span;
  span.device = position.device;
  span.step = position.step;
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

bool RowFiller::reads_files() const {
  return encoding_ == SampleEncoding::image_file ||
         std::ranges::any_of(source_.pictures(), [](const PictureInfo& picture) {
           return picture.encoding == SampleEncoding::image_file;
         });
}

int64_t RowFiller::worker_file_bytes() const {
  const int64_t files = 1 + std::ssize(source_.pictures());
  return rows_together() *
         (files * int64_t{kKeptFileBytes} + reader_.seek_indexes().largest_index_bytes());
}

void RowFiller::take(Slab& slab, const BatchPosition& position, int first, int count,
                     const Slab& made, const std::vector<BadSample>& bad) {
  rows_at(position).writer.take(slab, first, count, made);
  for (const BadSample& each : bad) quarantine_.report(each);
}

void RowFiller::finish(Slab& slab, const BatchPosition& position) const {
  const Rows& rows = rows_at(position);
  const size_t columns = source_.targets().size() + static_cast<size_t>(varying_.count());
  rows.annotations.pack(slab, columns, sampler_.options().rows);
  varying_.pack(slab, sampler_.options().rows);
  int valid = 0;
  for (int row = 0; row < sampler_.options().rows; ++row) valid += slab.weights[row] > 0;
  *slab.header = {.step = position.step,
                  .epoch = position.epoch,
                  .step_in_epoch = position.step_in_epoch,
                  .valid = valid,
                  .height = rows.size.height,
                  .width = rows.size.width,
                  .shape = position.shape,
                  .ready_ns = steady_now_ns()};
}

}  // namespace stoker
