#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "python/core/bind.h"
#include "python/core/bind_varying.h"
#include "python/core/feed.h"
#include "python/core/python_lock.h"
#include "staging/device_list.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;
using StateTuple = std::tuple<Step, int64_t, int64_t, uint64_t>;

// Appends the next batch to `taken`; returns whether there was one. Waits in short turns, so that a
// signal's handler can run between them. If the handler raises, a batch that was already taken is
// in `taken`.
bool next(Feed& feed, Step end, nb::list taken) {
  for (;;) {
    bool again = false;
    std::optional<Batch> batch;
    {
      Unlocked unlocked;
      batch = feed.next(end, again);
      if (again) feed.wait_ready(end, static_cast<int>(kSignalPoll.count()));
    }
    if (batch) taken.append(nb::cast(std::move(*batch)));
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!again) return batch.has_value();
  }
}

std::vector<SampleId> id_list(const Batch& batch) {
  const auto* ids = static_cast<const SampleId*>(batch.ids.data);
  return {ids, ids + batch.ids.size()};
}

std::vector<int> counted_rows(const Batch& batch) {
  std::vector<int> rows;
  const std::vector<RowNote>& notes = batch.draws->notes;
  for (size_t row = 0; row < notes.size(); ++row) {
    if (notes[row].counts) rows.push_back(static_cast<int>(row));
  }
  return rows;
}

// On the host, as the notes are: nobody waits for a device to learn how many objects there are.
std::vector<int32_t> object_counts(const Batch& batch) {
  std::vector<int32_t> counts;
  for (const RowNote& note : batch.draws->notes) counts.push_back(note.objects);
  return counts;
}

std::vector<std::array<int, 4>> picture_boxes(const Batch& batch) {
  std::vector<std::array<int, 4>> boxes;
  for (const RowNote& note : batch.draws->notes) {
    const auto [x, y, width, height] = note.picture;
    boxes.push_back({x, y, x + width, y + height});
  }
  return boxes;
}

nb::dict batch_targets(const Batch& batch) {
  nb::dict targets;
  for (const NamedArray& each : batch.targets) targets[each.name.c_str()] = each.array;
  return targets;
}

nb::dict batch_varying(const Batch& batch, const std::optional<std::vector<int64_t>>& rows) {
  nb::dict targets;
  for (const VaryingTarget& each : batch.varying) put_varying(each, rows, targets);
  return targets;
}

// As padded_values(), and the rows' lengths.
std::pair<Array, Array> batch_padded(const Batch& batch, const std::string& name, int64_t multiple,
                                     const std::variant<int64_t, double>& value) {
  for (const VaryingTarget& each : batch.varying) {
    if (each.column.name == name) return padded(each, multiple, value);
  }
  throw nb::key_error(name.c_str());
}

std::vector<std::string> text_targets(const Batch& batch) {
  std::vector<std::string> names;
  for (const VaryingTarget& each : batch.varying) {
    if (each.column.type == TargetType::text) names.push_back(each.column.name);
  }
  return names;
}

std::shared_ptr<Feed> make(const std::shared_ptr<Source>& source, const AugmentSpec& augment,
                           const LoaderOptions& loader, const std::string& device,
                           const ImageFormat& format, bool copy, bool poison) {
  return Feed::make(source, augment, loader,
                    {.device = device, .format = format, .copy = copy, .poison = poison});
}

// Feed::close() keeps those out that look at a feed until its threads have ended, and these may
// need Python's lock: nobody who has it may wait for a feed.
template <class Look>
auto without_python_lock(const Look& look) {
  const Unlocked unlocked;
  return look();
}

StateTuple state_of(const Feed& feed) {
  const LoaderState state = feed.state();
  return {state.next_step, state.epoch, state.step_in_epoch, state.fingerprint};
}

void check_state(const Feed& feed, Step next_step, uint64_t fingerprint, uint64_t seed) {
  feed.check_state({.next_step = next_step, .fingerprint = fingerprint}, seed);
}

nb::dict dict_of(const StageSnapshot& stage) {
  nb::dict dict;
  dict["items"] = stage.items;
  dict["input_wait_s"] = static_cast<double>(stage.input_wait_ns) * 1e-9;
  dict["output_wait_s"] = static_cast<double>(stage.output_wait_ns) * 1e-9;
  dict["service_s"] = static_cast<double>(stage.service_ns) * 1e-9;
  dict["mean_ready"] = stage.items == 0 ? 0.0
                                        : static_cast<double>(stage.occupancy_sum) /
                                              static_cast<double>(stage.items);
  return dict;
}

nb::dict dict_of(const RemoteStats& remote) {
  nb::dict dict;
  dict["rows"] = remote.rows;
  dict["claims"] = remote.claims;
  dict["given_up"] = remote.given_up;
  dict["taken_back"] = remote.taken_back;
  dict["refused"] = remote.refused;
  return dict;
}

nb::dict dict_of(const ShareStats& share) {
  nb::dict dict;
  dict["taken"] = share.taken;
  dict["given"] = share.given;
  dict["alone"] = share.alone;
  dict["taken_over"] = share.taken_over;
  dict["corrupt"] = share.corrupt;
  dict["spoilt"] = share.corrupt;  // its old name, for one version
  dict["waited_s"] = static_cast<double>(share.waited_ns) * 1e-9;
  return dict;
}

nb::dict dict_of(const DecodedCacheStats& cache) {
  nb::dict dict;
  dict["samples"] = cache.samples;
  dict["places"] = cache.places;
  dict["place_bytes"] = cache.place_bytes;
  dict["found"] = cache.found;
  dict["hits"] = cache.hits;
  dict["misses"] = cache.misses;
  dict["kept"] = cache.kept;
  dict["kept_bytes"] = cache.kept_bytes;
  dict["folder"] = cache.folder;
  dict["problem"] = cache.problem;
  return dict;
}

nb::dict dict_of(const StoreStats& store) {
  nb::dict dict;
  for_each_figure(store, [&](const char* name, auto value) { dict[name] = value; });
  if (!store.has_cache) return dict;
  dict["cache_hits"] = store.cache_hits;
  dict["cache_misses"] = store.cache_misses;
  dict["cache_kept_bytes"] = store.cache_kept_bytes;
  dict["cache_problem"] = store.cache_problem;
  return dict;
}

nb::dict stats_of(const Feed& feed) {
  const LoaderStats stats = without_python_lock([&] { return feed.stats(); });
  nb::dict dict;
  dict["read"] = dict_of(stats.read);
  dict["cached_read"] = dict_of(stats.cached_read);
  dict["decode"] = dict_of(stats.decode);
  dict["ring"] = dict_of(stats.rings.at(0));
  dict["staging"] = dict_of(stats.staging.at(0));
  dict["remote"] = dict_of(stats.remote);
  dict["share"] = dict_of(stats.share);
  dict["bad_samples"] = stats.bad_samples;
  dict["full_rows"] = stats.full_rows;
  dict["objects_left_out"] = stats.objects_left_out;
  dict["seek_index_used"] = stats.seek_index.used;
  dict["seek_index_refused"] = stats.seek_index.refused;
  dict["seek_index_unread_bytes"] = stats.seek_index.unread_bytes;
  dict["seek_index_recorded"] = stats.seek_recorded;
  dict["memory_waits"] = stats.memory_waits;
  dict["memory_taken_bytes"] = stats.memory_taken;
  dict["held"] = feed.held();
  if (stats.cache) dict["cache"] = dict_of(*stats.cache);
  if (stats.store) dict["store"] = dict_of(*stats.store);
  return dict;
}

nb::dict memory_of(const Feed& feed) {
  const MemoryPlan plan = without_python_lock([&] { return feed.memory_plan(); });
  nb::dict dict;
  dict["ring_bytes"] = plan.ring_bytes;
  dict["slot_bytes"] = plan.slot_bytes;
  dict["scratch_bytes"] = plan.scratch_bytes;
  dict["store_bytes"] = plan.store_bytes;
  dict["share_bytes"] = plan.share_bytes;
  dict["cache_bytes"] = plan.cache_bytes;
  dict["frame_bytes"] = plan.frame_bytes;
  dict["total_bytes"] = plan.total_bytes();
  dict["expected_bytes"] = plan.expected_bytes;
  dict["most_bytes"] = plan.most_bytes();
  dict["limit_bytes"] = plan.limit_bytes;
  return dict;
}

std::vector<std::string> device_names() {
  std::vector<std::string> names = {"cpu:0"};
  const CudaStatus cuda = query_cuda();
  for (const CudaDeviceInfo& info : cuda.devices) {
    if (cuda.problem.empty()) names.push_back(info.name);
  }
  return names;
}

}  // namespace

void bind_feed(nb::module_& module) {
  nb::exception<FeedError>(module, "FeedError", PyExc_RuntimeError);
  nb::class_<Batch>(module, "Batch")
      .def_prop_ro("step", [](const Batch& b) { return b.header.step; })
      .def_prop_ro("epoch", [](const Batch& b) { return b.header.epoch; })
      .def_prop_ro("step_in_epoch", [](const Batch& b) { return b.header.step_in_epoch; })
      .def_prop_ro("valid", [](const Batch& b) { return b.header.valid; })
      .def_prop_ro("images", [](const Batch& b) { return b.images; })
      .def_prop_ro("labels", [](const Batch& b) { return b.labels; })
      .def_prop_ro("weights", [](const Batch& b) { return b.weights; })
      .def_prop_ro("ids", [](const Batch& b) { return b.ids; })
      .def_prop_ro("targets", batch_targets, nb::sig("def targets(self) -> dict[str, Array]"))
      .def("varying", batch_varying, "rows"_a.none(),
           nb::sig("def varying(self, rows: collections.abc.Sequence[int] | None) -> dict[str, "
                   "typing.Any]"))
      .def("padded", batch_padded, "name"_a, "multiple"_a, "value"_a)
      .def("text_targets", text_targets)
      .def_prop_ro("views", [](const Batch& b) { return b.views; })
      .def("counted_rows", counted_rows)
      .def("object_counts", object_counts)
      .def("picture_boxes", picture_boxes)
      .def("draws", [](const Batch& b) { return b.draws->texts(); })
      .def("id_list", id_list);
  nb::class_<Feed>(module, "Feed")
      .def_static("make", make, nb::call_guard<Unlocked>(), "source"_a, "augment"_a, "options"_a,
                  "device"_a, "format"_a, "copy"_a, "poison"_a)
      .def("next", next, "end"_a, "taken"_a,
           nb::sig("def next(self, end: int, taken: list[Batch]) -> bool"))
      .def("close", &Feed::close, nb::call_guard<Unlocked>())
      .def_prop_ro("closed", &Feed::closed)
      .def_prop_ro("next_step", &Feed::next_step)
      .def_prop_ro("end_step", &Feed::end_step)
      .def_prop_ro("steps_per_epoch", &Feed::steps_per_epoch)
      .def_prop_ro("max_leases", &Feed::max_leases)
      .def_prop_ro("held", &Feed::held)
      .def("check_process", &Feed::check_process)
      .def("state", state_of, nb::call_guard<Unlocked>())
      .def("check_state", check_state, nb::call_guard<Unlocked>(), "next_step"_a, "fingerprint"_a,
           "seed"_a)
      .def("remote_rows", &Feed::remote_rows, nb::call_guard<Unlocked>(),
           nb::sig("def remote_rows(self) -> RemoteRows"))
      .def_prop_ro(
          "edits",
          [](const Feed& feed) { return std::tuple(feed.edits().erases, feed.edits().mixes); })
      .def("stats", stats_of, nb::sig("def stats(self) -> dict[str, typing.Any]"))
      .def("memory_plan", memory_of, nb::sig("def memory_plan(self) -> dict[str, int]"));
  // Starting a GPU's driver takes up to seconds.
  module.def("device_names", device_names, nb::call_guard<Unlocked>());
  module.def(
      "cuda_problem", [] { return query_cuda().problem; }, nb::call_guard<Unlocked>());
}

}  // namespace stoker::python
