// profile.json; its fields are documented in tools/profile/README.md.
#include <nlohmann/json.hpp>

#include "tools/profile/report.h"
#include "tools/profile/store_cause.h"
#include "tools/profile/template.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

// Returns null for what was not measured.
template <typename Number>
Json known(Number value) {
  return value < 0 ? Json(nullptr) : Json(value);
}

Json split_json(const StepSplit& split) {
  return {{"step_s", split.step},
          {"compute_s", split.compute},
          {"input_wait_s", split.input_wait},
          {"copy_wait_s", split.copy_wait},
          {"gradient_wait_s", known(split.gradient_wait)},
          {"launch_wait_s", split.launch_wait},
          {"update_s", split.update},
          {"other_s", split.other},
          {"waiting_share", split.waiting_share()}};
}

Json latency_json(const RunMeasurements& measured) {
  Json result = Json::object();
  for (int kind = 0; kind < kSpanKinds; ++kind) {
    const Latency& latency = measured.latency[kind];
    if (latency.count == 0) continue;
    result[to_string(static_cast<SpanKind>(kind))] = {{"count", latency.count},
                                                      {"mean_s", latency.mean},
                                                      {"p50_s", latency.p50},
                                                      {"p90_s", latency.p90},
                                                      {"p99_s", latency.p99},
                                                      {"max_s", latency.max},
                                                      {"cpu_mean_s", known(latency.cpu_mean)}};
  }
  return result;
}

Json gpus_json(const std::vector<GpuLoad>& gpus) {
  Json result = Json::array();
  for (const GpuLoad& gpu : gpus) {
    result.push_back(
        {{"index", gpu.index},
         {"cuda", gpu.cuda.empty() ? Json() : Json(gpu.cuda)},
         {"name", gpu.name},
         {"readings", gpu.readings},
         {"busy_share", known(gpu.busy_mean)},
         {"busy_share_least", known(gpu.busy_least)},
         {"busy_share_most", known(gpu.busy_most)},
         {"sm_clock_mhz", known(gpu.sm_clock_mhz)},
         {"sm_clock_max_mhz", known(gpu.sm_clock_max_mhz)},
         {"memory_used_bytes", known(gpu.memory_used_bytes)},
         {"memory_bytes", known(gpu.memory_bytes)},
         {"pcie_to_gpu_bytes_per_second", known(gpu.pcie_to_gpu_bytes_per_second)},
         {"pcie_from_gpu_bytes_per_second", known(gpu.pcie_from_gpu_bytes_per_second)}});
  }
  return result;
}

Json run_json(const RunMeasurements& measured) {
  return {{"seconds", measured.seconds},
          {"steps", measured.steps},
          {"images_per_second", measured.samples_per_second},
          {"spread", known(measured.spread)},
          {"step", split_json(measured.split)},
          {"pauses",
           {{"count", measured.pauses.count},
            {"mean_s", measured.pauses.mean_s},
            {"share_of_waiting", measured.pauses.share},
            {"burst_steps", measured.pauses.burst_steps}}},
          {"evaluate_s", measured.evaluate_s},
          {"busy_workers", measured.busy_workers},
          {"busy_io_threads", measured.busy_readers},
          {"worker_cpu_speed", measured.worker_cpu_speed},
          {"cached_share", measured.cached_share},
          {"pixels_share", measured.pixels_share},
          {"own_cores", known(measured.own_cores)},
          {"other_cores", known(measured.other_cores)},
          {"stolen_cores", known(measured.stolen_cores)},
          {"consumer_delay_share", known(measured.consumer_delay_share)},
          {"worker_delay_share", known(measured.worker_delay_share)},
          {"disk_share", known(measured.disk_share)},
          {"slow_share", measured.slow_share},
          {"gpus", gpus_json(measured.gpus)},
          {"latency", latency_json(measured)}};
}

Json shape_json(const FeedShape& shape) {
  return {{"rows", shape.rows},
          {"devices", shape.devices},
          {"workers", shape.workers},
          {"io_threads", shape.io_threads},
          {"ring_depth", shape.ring_depth},
          {"slots", shape.slots},
          {"zero_copy", shape.zero_copy},
          {"cores", shape.cores},
          {"machine_cores", shape.machine_cores}};
}

Json change_json(const FeedChange& change) {
  Json result = Json::object();
  const auto add = [&](const char* name, const auto& value) {
    if (value != 0) result[name] = value;
  };
  add("workers", change.workers);
  add("io_threads", change.io_threads);
  add("ring_depth", change.ring_depth);
  add("slots", change.slots);
  add("cores", change.cores);
  add("storage_free", change.storage_free);
  add("copy_free", change.copy_free);
  add("undisturbed", change.undisturbed);
  return result;
}

Json recommendations_json(const std::vector<Recommendation>& recommendations) {
  Json list = Json::array();
  for (const Recommendation& each : recommendations) {
    list.push_back({{"what", each.what},
                    {"change", change_json(each.change)},
                    {"images_per_second", each.samples_per_second},
                    {"low", each.low},
                    {"high", each.high},
                    {"waiting_share", each.waiting_share}});
  }
  return list;
}

Json verdict_json(const Verdict& verdict) {
  Json result = {{"limit", to_string(verdict.limit)},
                 {"headline", headline(verdict)},
                 {"detail", verdict.detail},
                 {"waiting_share", verdict.waiting_share},
                 {"confidence", verdict.confidence},
                 {"confidence_text", verdict.confidence_text},
                 {"model_error", verdict.model_error},
                 {"experiment_error",
                  verdict.experiment_done ? Json(verdict.experiment_error) : Json(nullptr)},
                 {"bound_images_per_second", known(verdict.bound_samples_per_second)},
                 {"feed_images_per_second", known(verdict.feed_samples_per_second)}};
  for (const StageGain& gain : verdict.gains) {
    result["gain_if_free"][to_string(gain.stage)] = gain.gain;
  }
  result["recommendations"] = recommendations_json(verdict.recommendations);
  result["larger_machine"] = recommendations_json(verdict.larger_machine);
  result["evidence"] = Json::array();
  for (const Evidence& each : verdict.evidence) {
    result["evidence"].push_back({{"text", each.text}, {"measured_by", each.measured_by}});
  }
  result["unknown"] = verdict.unknown;
  return result;
}

Json timeline_json(const std::vector<TimelineSlice>& slices) {
  Json result = Json::array();
  for (const TimelineSlice& slice : slices) {
    result.push_back({{"begin_s", slice.begin_s},
                      {"length_s", slice.length_s},
                      {"phase", to_string(slice.phase)},
                      {"images_per_second", slice.samples_per_second},
                      {"busy_workers", slice.busy_workers},
                      {"busy_io_threads", slice.busy_readers},
                      {"waiting_share", slice.waiting_share},
                      {"ready_batches", slice.ready_batches}});
  }
  return result;
}

Json store_json(const StoreStats& stats) {
  Json result;
  for_each_figure(stats, [&](const char* name, auto value) { result[name] = value; });
  if (stats.ranges > 0) result["cause"] = to_string(find_store_cause(stats).cause);
  return result;
}

}  // namespace

Json profile_json(const Profile& profile) {
  const ProfileMeasurements& measurements = profile.measurements;
  const StorageRates& storage = measurements.storage;
  Json result = {
      {"format", "stoker profile 2"},
      {"command", profile.command},
      {"version", profile.version},
      {"device", profile.device},
      {"verdict", verdict_json(profile.verdict)},
      {"feed", shape_json(measurements.shape)},
      {"warm_up",
       {{"seconds", profile.warm_up.seconds},
        {"steps", profile.warm_up.steps},
        {"left_out_s", profile.warm_up.left_out_s},
        {"left_out_steps", profile.warm_up.left_out_steps},
        {"first_batch_s", profile.warm_up.first_batch_s}}},
      {"measured", run_json(measurements.measured)},
      {"replayed", run_json(measurements.replayed)},
      {"other_workers", run_json(measurements.other)},
      {"storage",
       {{"warm_images_per_second", known(storage.warm)},
        {"warm_twice_the_threads", known(storage.warm_twice)},
        {"cold_images_per_second", known(storage.cold)},
        {"cold_twice_the_threads", known(storage.cold_twice)}}},
      {"memory",
       {{"planned_bytes", profile.planned_bytes}, {"resident_bytes", profile.resident_bytes}}},
      {"energy", energy_json(measurements.measured.energy, measurements.no_energy,
                             measurements.measured.images())},
      {"dropped_spans", measurements.dropped_spans}};
  result["other_workers"]["workers"] = measurements.other_workers;
  if (profile.checkpoint.seconds >= 0) {
    result["checkpoint"] = {{"seconds", profile.checkpoint.seconds},
                            {"bytes", profile.checkpoint.bytes},
                            {"every_steps", profile.checkpoint.every_steps}};
  }
  if (!profile.left_out.empty()) result["left_out"] = profile.left_out;
  if (measurements.store) result["store"] = store_json(*measurements.store);
  if (!measurements.no_gpus.empty()) result["no_gpus"] = measurements.no_gpus;
  result["slowest_files"] = Json::array();
  for (size_t i = 0; i < measurements.measured.slowest.size(); ++i) {
    const SlowFile& file = measurements.measured.slowest[i];
    result["slowest_files"].push_back({{"sample", file.sample},
                                       {"name", profile.slow_names[i]},
                                       {"step", file.step},
                                       {"read_s", file.read},
                                       {"fill_s", file.fill}});
  }
  result["timeline"] = timeline_json(profile.timeline);
  return result;
}

std::string profile_page(const nlohmann::ordered_json& profile) {
  const std::string json =
      profile.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
  std::string data;
  data.reserve(json.size());
  // '<' occurs only in strings, where \u003c means the same.
  for (const char c : json) {
    if (c == '<') {
      data += "\\u003c";
    } else {
      data += c;
    }
  }
  std::string page = kProfileTemplate;
  return page.replace(page.find(kProfilePlace), std::string_view(kProfilePlace).size(), data);
}

}  // namespace stoker
