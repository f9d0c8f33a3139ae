#include "pipeline/loader.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "pipeline/augment/erasing.h"
#include "pipeline/exchange/remote_rows.h"
#include "pipeline/exchange/shared_filler.h"
#include "pipeline/feed/feed_graph.h"
#include "pipeline/feed/feed_sequence.h"
#include "pipeline/feed/inline_feed.h"
#include "pipeline/feed/memory_plan.h"
#include "pipeline/files/digest.h"
#include "pipeline/measure_hooks.h"
#include "pipeline/row/device_edits.h"
#include "pipeline/row/fingerprint.h"
#include "pipeline/row/loader_options.h"
#include "pipeline/row/quarantine.h"
#include "pipeline/row/row_filler.h"
#include "pipeline/source/sample_file.h"
#include "staging/allowed_cores.h"
#include "staging/mutex.h"
#include "staging/pinned_ring.h"
#include "staging/stager.h"

namespace stoker {
namespace {

int count_workers(int workers) { return workers >= 0 ? workers : usable_cores(); }

int count_slots(int slots, const Device& device) {
  if (slots >= 0) return slots;
  return device.host_accessible() ? 0 : 2;
}

std::vector<std::vector<TargetColumn>> columns_of_shapes(const Source& source,
                                                         const AugmentSpec& augment,
                                                         const LoaderOptions& options) {
  std::vector<std::vector<TargetColumn>> all;
  for (const AugmentSpec& spec : row_specs(augment, options)) {
    all.push_back(batch_columns(source, spec, options));
  }
  return all;
}

constexpr Step kEndless = std::numeric_limits<Step>::max();

}  // namespace

struct Loader::Impl {
  // Constant after construction.
  const LoaderOptions options;
  const std::vector<Device*> devices;
  const int workers, spare_workers;
  const std::vector<std::vector<TargetColumn>> targets;  // of each shape
  const DeviceEdits edits;
  const BatchLayout layout;
  const uint64_t fingerprint;
  Quarantine quarantine;
  RowFiller filler;
  const int64_t steps_per_epoch;
  const Step end_step;
  const Step first_batch, end_batch;                          // steps * parts
  std::optional<MemoryBudget> pictures_memory, files_memory;  // outlive the threads below
  std::vector<std::unique_ptr<PinnedRing>> rings;
  std::vector<std::unique_ptr<RowEditor>> editors;  // one per device, or none
  std::vector<std::unique_ptr<Stager>> stagers;
  MemoryShares memory;
  std::once_flag looked;
  std::optional<PictureLook> look;  // for memory_plan()
  std::unique_ptr<SharedFiller> shared;
  std::unique_ptr<LookAhead> look_ahead;  // of a source in a store, or null; it asks `shared`
  std::optional<InlineFeed> inline_feed;
  std::shared_ptr<RemoteRows> remote;
  std::unique_ptr<FeedGraph> graph;  // it fills slabs until it is destroyed

  std::vector<std::atomic<Step>> next_batch;  // per device
  std::atomic<bool> ended{false};             // stopped or failed
  Mutex mutex;
  std::exception_ptr error GUARDED_BY(mutex);

  Impl(const Source& source, const AugmentSpec& augment, std::vector<Device*> devices_in,
       const LoaderOptions& options_in)
      : options(options_in),
        devices(std::move(devices_in)),
        workers(count_workers(options.feed.workers)),
        spare_workers(options.measure ? options.measure->spare_workers : 0),
        targets(columns_of_shapes(source, augment, options)),
        edits(device_edits(augment, devices, options)),
        layout(batch_layout(source, augment, options, edits)),
        fingerprint(pixels_fingerprint(source, augment, options, global_batch())),
        quarantine(source, options),
        filler(source, augment, options, static_cast<int>(devices.size()), quarantine, edits),
        steps_per_epoch(filler.sampler().steps_per_epoch()),
        end_step(steps_of(options.epochs, steps_per_epoch)),
        first_batch(options.first_step * options.parts),
        end_batch(end_step < kEndless / options.parts ? end_step * options.parts : kEndless),
        next_batch(devices.size()) {
    if (options.first_step < 0 || options.first_step > end_step) {
      throw InvalidField("LoaderOptions", "first_step",
                         " is " + std::to_string(options.first_step) + ", must be 0 to " +
                             std::to_string(end_step) + ", the feed's end");
    }
    check_grid();
    for (auto& batch : next_batch) batch = first_batch;
    make_editors(augment);
    std::vector<PinnedRing*> each_ring;
    for (Device* device : devices) {
      rings.push_back(
          std::make_unique<PinnedRing>(*device, layout, options.ring_depth, first_batch));
      stagers.push_back(std::make_unique<Stager>(
          *device, *rings.back(), count_slots(options.slots, *device), first_batch, end_batch,
          options.leases, options.tracer, static_cast<int>(stagers.size()),
          edits.any() ? editors[stagers.size()].get() : nullptr));
      each_ring.push_back(rings.back().get());
    }
    if (!options.share.name.empty()) {
      shared = std::make_unique<SharedFiller>(filler, source, augment, options,
                                              static_cast<int>(devices.size()), edits, end_batch);
    }
    // Where others fill rows, too, nobody knows which samples will be read here: none is announced.
    if (options.remote_rows) {
      remote = std::make_shared<RemoteRows>(remote_options(source, augment));
    } else if (!shared || shared->looks_ahead()) {
      look_ahead = source.storage().look_ahead(
          FeedSequence(filler, shared.get(), static_cast<int>(devices.size()), options.batch_size,
                       first_batch, end_batch));
    }
    divide_memory();
    if (is_inline()) {
      inline_feed.emplace(filler, each_ring, shared.get());
      return;
    }
    graph = std::make_unique<FeedGraph>(filler, each_ring, graph_options());
  }

  ~Impl() { stop(nullptr); }

  RemoteRows::Options remote_options(const Source& source, const AugmentSpec& augment) const {
    LoaderOptions plain = options;
    plain.format.reset();
    const auto count = static_cast<int>(devices.size());
    // A slab that is leased in place is not under way.
    const int leased = devices[0]->host_accessible() ? options.leases : 0;
    return {.fingerprint = rows_fingerprint(source, augment, options, count, edits),
            .batch = batch_layout(source, augment, plain, edits).shape(),
            .window = std::max(1, options.ring_depth - leased) * count,
            .is_all_remote = workers == 0};
  }

  // The steps before a grid are those of another batch.
  void check_grid() const {
    const EpochGrid& grid = options.grid;
    const int64_t epoch = options.first_step / steps_per_epoch + options.first_epoch_offset;
    const int64_t step = options.first_step % steps_per_epoch;
    if (epoch > grid.epoch || (epoch == grid.epoch && step >= grid.step)) return;
    throw InvalidField("LoaderOptions", "first_step",
                       " is step " + std::to_string(step) + " of epoch " + std::to_string(epoch) +
                           ", but the grid begins at step " + std::to_string(grid.step) +
                           " of epoch " + std::to_string(grid.epoch));
  }

  FeedGraphOptions graph_options() {
    const bool files = filler.source().encoding() == SampleEncoding::image_file;
    // One worker is there for the rows that others gave up.
    return {.workers = std::max(workers, 1),
            .spare_workers = spare_workers,
            .io_threads = files ? options.feed.io_threads : 0,
            .first_step = first_batch,
            .end_step = end_batch,
            .large_files = files_memory ? &*files_memory : nullptr,
            .exchange = remote ? static_cast<RowExchange*>(remote.get()) : shared.get()};
  }
  bool is_inline() const { return workers == 0 && !remote; }
  int64_t filling_threads() const {
    return is_inline() ? std::ssize(devices) : std::max(workers, 1) + spare_workers;
  }
  int64_t file_bytes() {
    if (is_inline()) return 0;
    return FeedGraph::file_bytes(filler, graph_options(), layout.shape().rows,
                                 std::ssize(devices) * options.ring_depth);
  }

  // The plan but for what workers have.
  MemoryPlan made_once() const {
    MemoryPlan plan;
    plan.ring_bytes =
        std::ssize(devices) * options.ring_depth * static_cast<int64_t>(layout.slab_bytes());
    for (const auto& stager : stagers) plan.slot_bytes += stager->device_bytes();
    for (const auto& editor : editors) plan.slot_bytes += editor->device_bytes();
    const bool mixes = filler.augment().mix.on();
    const int64_t converted = options.format ? static_cast<int64_t>(filler.row_bytes()) : 0;
    const SampleReader& reader = filler.reader();
    plan.scratch_bytes =
        filling_threads() * (converted * (mixes ? 2 : 1) + reader.decoded_rows().scratch_bytes()) +
        reader.seek_indexes().table_bytes();
    if (shared) {
      plan.share_bytes = shared->shared_bytes();
      plan.scratch_bytes += filling_threads() * shared->message_bytes();
    }
    plan.cache_bytes = reader.decoded_rows().memory_bytes();
    plan.store_bytes = filler.source().storage().look_ahead_bytes();
    return plan;
  }

  struct WorkerNeed {
    int64_t scratch = 0;  // at most, for pictures that are read by rows
    int64_t frame = 0;    // at most, in addition, for other pictures
  };
  WorkerNeed worker_need() const {
    WorkerNeed need;
    for (const AugmentSpec& spec : row_specs(filler.worker_augment(), options)) {
      const Source& source = filler.source();
      need.scratch = std::max(need.scratch, worker_scratch_bytes(source, spec, filler.decode()));
      need.frame = std::max(need.frame, worker_frame_bytes(source, spec, filler.decode()));
    }
    need.scratch += filler.worker_file_bytes();
    return need;
  }

  void divide_memory() {
    const MemoryPlan once = made_once();
    const bool on_host = devices[0]->host_accessible();
    const int64_t ahead = file_bytes();
    const int64_t needed = once.total_bytes() + ahead - (on_host ? 0 : once.slot_bytes);
    memory =
        share_memory(options.feed, needed, worker_need().scratch, filling_threads(), ahead > 0);
    if (options.feed.memory > 0) return_freed_memory();
    pictures_memory.emplace(memory.pictures);
    files_memory.emplace(memory.large_files);
    filler.use_memory({&*pictures_memory, memory.own});
    refuse_unfit_pictures(filler.source(), filler.worker_augment(), filler.decode(), memory,
                          quarantine.budget());
  }

  // Returns what is expected for workers and for files that are read ahead.
  int64_t usual_bytes() {
    const std::vector<AugmentSpec> specs = row_specs(filler.worker_augment(), options);
    const AugmentSpec& spec = *std::ranges::max_element(specs, {}, [](const AugmentSpec& each) {
      return int64_t{each.output.width} * each.output.height;
    });
    const Source& source = filler.source();
    std::call_once(
        looked, [&] { look = look_at_pictures(source, spec, filler.decode(), *pictures_memory); });
    const int64_t usual = worker_usual_bytes(source, spec, filler.decode(), look);
    const int64_t threads = filling_threads();
    const int64_t beyond = std::max(usual - memory.own, int64_t{0});
    int64_t bytes = threads * (kUsualThreadBytes + std::min(usual, memory.own)) +
                    std::min(threads * beyond, memory.pictures);
    if (!look) return bytes;
    bytes += std::min(look->row_bytes, memory.own);  // of the look itself
    const auto kept = int64_t{kKeptFileBytes};
    return look->is_cached ? bytes : bytes + file_bytes() / kept * std::min(look->file_bytes, kept);
  }

  MemoryPlan memory_plan() {
    MemoryPlan plan = made_once();
    const WorkerNeed need = worker_need();
    const int64_t threads = filling_threads();
    const bool is_stored = filler.source().storage().store_stats().has_value();
    plan.expected_bytes =
        plan.total_bytes() + kUsualCodeBytes + usual_bytes() + (is_stored ? kUsualClientBytes : 0);
    plan.scratch_bytes += threads * std::min(need.scratch, memory.own) + file_bytes();
    plan.limit_bytes = memory.limit;
    if (filler.reads_files()) {
      const int64_t most = need.scratch + need.frame + kMaxSampleBytes - memory.own;
      plan.frame_bytes = std::min(memory.pictures + memory.large_files, threads * most);
    }
    return plan;
  }

  void make_editors(const AugmentSpec& augment) {
    if (!edits.any()) return;
    std::shared_ptr<const ErasingNoise> noise;
    if (edits.erases) noise = erasing_noise(*last_erasing(augment.stages));
    for (Device* device : devices) {
      editors.push_back(std::make_unique<RowEditor>(*device, noise.get()));
    }
  }

  void stop(std::exception_ptr reason) noexcept {
    {
      MutexLock lock(mutex);
      if (!ended) error = reason;
      ended = true;
    }
    for (auto& ring : rings) ring->stop(reason);
    if (pictures_memory) pictures_memory->stop();
    if (graph) graph->stop();
  }

  DeviceBatch next(int device, Stream& compute) {
    check_device(device);
    if (ended) {
      MutexLock lock(mutex);
      if (error) std::rethrow_exception(error);
      return {};
    }
    std::atomic<Step>& number = next_batch[device];
    if (inline_feed && number < end_batch) {
      // Otherwise fill() might wait for the slab that the caller holds.
      stagers[device]->check_leases();
      inline_feed->fill(number, device);
    }
    DeviceBatch batch = stagers[device]->next(compute);
    if (!batch) return batch;
    try {
      quarantine.hand_out(device, batch.header().step);
    } catch (...) {
      stop(std::current_exception());
      throw;
    }
    ++number;
    return batch;
  }

  bool wait_ready(int device, int ms) {
    check_device(device);
    if (ended || inline_feed) return true;
    return stagers[device]->wait_ready(ms);
  }

  void check_device(int device) const {
    if (device >= 0 && device < static_cast<int>(devices.size())) return;
    throw std::invalid_argument("Loader: device " + std::to_string(device) + " of " +
                                std::to_string(devices.size()));
  }

  uint64_t resume_fingerprint() const {
    return stoker::resume_fingerprint(filler.source(), options, fingerprint, global_batch());
  }
  int64_t global_batch() const {
    return stoker::global_batch(options, static_cast<int64_t>(devices.size()));
  }
};

void Loader::check(const Source& source, const AugmentSpec& augment,
                   const std::vector<Device*>& devices, const LoaderOptions& options) {
  check_loader(source, augment, devices, options);
}

Loader::Loader(const Source& source, const AugmentSpec& augment, std::vector<Device*> devices,
               const LoaderOptions& options) {
  check_loader(source, augment, devices, options);
  impl_ = std::make_unique<Impl>(source, augment, std::move(devices), options);
  if (!options.measure) return;
  options.measure->limit_workers = [graph = impl_->graph.get()](int workers) {
    if (graph) graph->limit_workers(workers);
  };
}

Loader::~Loader() = default;

DeviceBatch Loader::next(int device, Stream& compute) { return impl_->next(device, compute); }

bool Loader::wait_ready(int device, int ms) { return impl_->wait_ready(device, ms); }

int Loader::max_leases(int device) const {
  impl_->check_device(device);
  return impl_->stagers[device]->max_leases();
}

int64_t Loader::steps_per_epoch() const { return impl_->steps_per_epoch; }

const std::vector<TargetColumn>& Loader::targets(int shape) const {
  return impl_->targets.at(static_cast<size_t>(shape));
}

Step Loader::end_step() const { return impl_->end_step; }

LoaderState Loader::state() const {
  Step slowest = impl_->next_batch[0];
  for (const auto& batch : impl_->next_batch) slowest = std::min<Step>(slowest, batch);
  const BatchPosition next = impl_->filler.position(slowest, 0);
  return {next.step, next.epoch, next.step_in_epoch, impl_->resume_fingerprint(),
          impl_->options.grid};
}

Step Loader::resume_step(const LoaderState& state, const Loader& like) {
  return resume_step(state, like, like.impl_->options.seed);
}

Step Loader::resume_step(const LoaderState& state, const Loader& like, uint64_t seed) {
  const Impl& loader = *like.impl_;
  LoaderOptions options = loader.options;
  options.seed = seed;
  check_state(state, loader.filler.source(), loader.filler.augment(), options,
              loader.global_batch());
  return state.next_step;
}

void Loader::check_state(const LoaderState& state, const Source& source, const AugmentSpec& augment,
                         const LoaderOptions& options, int64_t global_batch) {
  const uint64_t pixels = pixels_fingerprint(source, augment, options, global_batch);
  const uint64_t own = resume_fingerprint(source, options, pixels, global_batch);
  if (state.fingerprint == own) return;
  throw std::invalid_argument(
      "cannot resume at step " + std::to_string(state.next_step) +
      ": the state is of another configuration (fingerprint " + hex64(state.fingerprint) +
      ", this loader has " + hex64(own) +
      "); source, augmentation, seed, shuffle or order, last_batch, the pixel policies and the "
      "global batch (here " +
      std::to_string(global_batch) + " samples) must be the same");
}

uint64_t Loader::fingerprint() const { return impl_->fingerprint; }

MemoryPlan Loader::memory_plan() const { return impl_->memory_plan(); }

LoaderStats Loader::stats() const {
  LoaderStats stats;
  stats.store = impl_->filler.source().storage().store_stats();
  stats.read = impl_->filler.reader().stats().snapshot();
  stats.cached_read = impl_->filler.reader().cached_stats().snapshot();
  stats.decode = impl_->filler.decode_stats().snapshot();
  for (const auto& ring : impl_->rings) stats.rings.push_back(ring->stats().snapshot());
  for (const auto& stager : impl_->stagers) stats.staging.push_back(stager->stats().snapshot());
  if (impl_->remote) stats.remote = impl_->remote->stats();
  if (impl_->shared) stats.share = impl_->shared->stats();
  stats.bad_samples = impl_->quarantine.bad_samples();
  stats.memory_waits = impl_->pictures_memory->waits();
  stats.memory_taken = impl_->pictures_memory->most_taken();
  stats.full_rows = impl_->filler.full_rows();
  stats.objects_left_out = impl_->filler.objects_left_out();
  stats.seek_index = impl_->filler.reader().seek_indexes().use();
  stats.cache = impl_->filler.reader().decoded_rows().stats();
  stats.seek_recorded = impl_->filler.reader().seek_indexes().recorded();
  return stats;
}

void Loader::stop() noexcept { impl_->stop(nullptr); }

std::shared_ptr<RemoteRows> Loader::remote_rows() const { return impl_->remote; }

}  // namespace stoker
