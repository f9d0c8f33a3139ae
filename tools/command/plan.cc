// stoker plan: calculates the machine that a number of GPUs needs, and predicts how they scale on a
// machine's links.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <set>
#include <stdexcept>

#include "bench/suite/feed_bench.h"
#include "bench/suite/feed_parts.h"
#include "bench/suite/link_plan.h"
#include "pipeline/files/json_file.h"
#include "staging/allowed_cores.h"
#include "staging/batch_layout.h"
#include "tools/command/bench_options.h"
#include "tools/command/command.h"
#include "tools/command/machine_plan.h"
#include "tools/command/what_if.h"
#include "tools/machine/machine.h"
#include "tools/option/bucket_choice.h"
#include "tools/option/train_options.h"
#include "train/model/models.h"

namespace stoker {
namespace {

constexpr double kMiB = 1 << 20;
// A row costs the same in any batch.
constexpr int kMeasuredRows = 64;

// Up to so many GPUs the tables have each number of them, beyond that 1, 2, 4 and so on.
constexpr int kAllCounts = 8;

// Options that --machine needs besides the demand.
struct LinkOptions {
  std::string machine;
  int classes = 1000;
  double grad_mib = 0;
  double bucket_mib = 25;
  double cores = 0;
  std::vector<std::string> reductions = {"all-reduce:nccl", "all-reduce:host", "parameter-server"};
  std::vector<std::string> wires = {"fp32"};
};

constexpr std::initializer_list<const char*> kLinkOptions = {
    "--classes", "--grad-mib", "--bucket-mib", "--reduce", "--grad-wire"};

void add_node_options(CLI::App& app, NodeDemand& nodes) {
  app.add_option("--node-cores", nodes.node_cores,
                 "Also calculate how many machines without GPUs, of so many cores each, are to "
                 "fill rows for the one with the GPUs (stoker.ray). Needs --cores")
      ->check(CLI::Range(1, 1 << 16))
      ->default_str("");
  app.add_option("--link-gbit", nodes.link_gbit,
                 "Network of each of these machines, Gbit/s (with --node-cores)")
      ->check(CLI::Range(0.001, 1e6));
}

void add_link_options(CLI::App& app, LinkOptions& options) {
  app.add_option("--machine", options.machine,
                 fmt::format("Also predict how GPUs scale on the links of a machine: {}, or a JSON "
                             "file (bench/README.md has its form)",
                             preset_names()));
  app.get_option("--model")->description(
      "Model whose recipe says how to augment (default: none, random_resized_crop | flip), and "
      "whose gradients are summed (with --machine)");
  app.add_option("--classes", options.classes, "Classes of the model (with --machine)")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--grad-mib", options.grad_mib,
                 "Gradients of another model, MiB of fp32, spread evenly over the backward pass "
                 "(with --machine, instead of a model)")
      ->check(CLI::Range(0.0, 16384.0));
  app.add_option("--bucket-mib", options.bucket_mib,
                 "Size in MiB of the buckets in which gradients are summed while the backward pass "
                 "runs. 0 sums all of them after it (with --machine)")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--cores", options.cores,
                 "Cores of the machine that feed, like the measured ones (with --machine, default: "
                 "batches are never late; with --node-cores, where 0 is possible)")
      ->check(CLI::NonNegativeNumber)
      ->default_str("");
  check_reduce(app.add_option(
                   "--reduce", options.reductions,
                   "Strategies to predict, as a list. parameter-server is the one in host memory, "
                   "and parameter-server:device the one that GPUs can have (with --machine)"))
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  check_grad_wire(app.add_option("--grad-wire", options.wires,
                                 "Number formats in which gradients travel, as a list: each with "
                                 "each strategy (with --machine)"))
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

// Refuses what would be ignored, and what is missing.
void check_link_options(const CLI::App& app, const LinkOptions& options) {
  const bool has_nodes = is_given(app, "--node-cores");
  if (has_nodes && !is_given(app, "--cores")) {
    throw std::invalid_argument("--node-cores needs --cores, those of the machine with the GPUs");
  }
  if (!has_nodes) refuse_if_given(app, {"--link-gbit"}, "it is for --node-cores");
  if (!has_nodes && options.machine.empty()) {
    refuse_if_given(app, {"--cores"}, "it is for a prediction with --machine, or for --node-cores");
  }
  if (!has_nodes && is_given(app, "--cores") && options.cores == 0) {
    throw std::invalid_argument("--cores 0 is for --node-cores");
  }
  if (options.machine.empty()) {
    refuse_if_given(app, kLinkOptions, "it is for a prediction with --machine");
    if (!is_given(app, "--gpus")) throw std::invalid_argument("--gpus is needed without --machine");
    return;
  }
  if (is_given(app, "--model") == is_given(app, "--grad-mib")) {
    throw std::invalid_argument("--machine needs either --model or --grad-mib");
  }
  if (is_given(app, "--grad-mib")) refuse_if_given(app, {"--classes"}, "it is of a model");
}

void predict_links(const LinkOptions& options, const LinkMachine& machine, const FeedCost& cost,
                   const PlanDemand& demand, const std::string& model, Report& report) {
  LinkPlanDemand links;
  links.counts = parse_counts(
      demand.gpus <= kAllCounts ? fmt::format("1..{}", demand.gpus) : doubling_counts(demand.gpus),
      "--gpus");
  links.rate = demand.rate;
  links.batch = demand.batch;
  const BatchLayout layout(
      {.rows = demand.batch, .height = cost.size.height, .width = cost.size.width});
  links.row_bytes = static_cast<double>(layout.device_bytes()) / demand.batch;
  links.reductions.clear();
  for (const std::string& name : options.reductions) links.reductions.push_back(parse_reduce(name));
  links.wires.clear();
  for (const std::string& name : options.wires) links.wires.push_back(parse_grad_wire(name));
  const auto bucket_bytes = static_cast<int64_t>(options.bucket_mib * kMiB);
  std::optional<NetSpec> net;
  if (model.empty()) {
    links.parts =
        even_parts(static_cast<int64_t>(options.grad_mib * kMiB / sizeof(float)), bucket_bytes);
  } else {
    net = make_net(model, cost.size, options.classes);
    links.net = &*net;
    links.parts = model_parts(*net, bucket_bytes);
  }
  links.schedule.slots = demand.slots;
  links.schedule.ring_depth = demand.ring_depth;
  links.schedule.file_bytes_per_row = cost.sample_bytes;
  links.schedule.cores = options.cores;
  links.schedule.core_seconds_per_row = 1e-3 * cost.cpu_ms;
  add_link_plan(machine, links, report);
  report.settings["machine"] = machine.name;
  report.settings["model"] = model;
  report.settings["classes"] = options.classes;
  report.settings["grad_mib"] = options.grad_mib;
  report.settings["bucket_mib"] = options.bucket_mib;
  report.settings["cores"] = options.cores;
}

nlohmann::ordered_json read_feed(const std::string& path) {
  try {
    return read_json_file<nlohmann::ordered_json>(path, [](nlohmann::ordered_json json) {
      static_cast<void>(feed_cost(json));  // an error here gets the file's name
      return json;
    });
  } catch (const std::runtime_error& error) {
    throw std::invalid_argument(std::string("--feed: ") + error.what());
  }
}

// A plan starts from it: a feed that was measured here and now, or the result of a bench.
struct PlannedFeed {
  FeedCost cost;
  FeedWhatIf model;
  nlohmann::ordered_json settings, machine;
  double full_rate = 0;  // images/s of the machine's own cores
};

// A feed on all cores. `row`: the size of its rows; {}: that of the augmentation.
FeedWork work_of(const BenchDataOptions& data, const Source& source, Size row,
                 const PlanDemand& demand) {
  FeedWork work{source, data.augment.spec(source), {}};
  if (row != Size{}) work.augment = work.augment.with_output(row);
  work.options.batch_size = std::min(demand.batch, kMeasuredRows);
  work.options.epochs = -1;
  work.options.ring_depth = demand.ring_depth;
  work.options.slots = demand.slots;
  work.options.feed = data.data.feed();
  work.options.feed.workers = usable_cores();
  work.options.feed.max_bad = 1e18;
  // An epoch that makes seek indexes costs more than those after it.
  work.options.feed.seek_index = "off";
  return work;
}

PlannedFeed measure_feed(const FeedWork& work, double seconds) {
  const MeasuredFeed feed = measure_full_feed(work.source, work.augment, work.options, seconds);
  return {.cost = feed_cost(feed, mean_sample_bytes(work.source), work.augment.output),
          .model = feed.model(),
          .settings = {{"samples", work.source.size()},
                       {"augment", work.augment.describe()},
                       {"pixels", to_string(work.options.feed.decode.pixels)},
                       {"workers", work.options.feed.workers},
                       {"io_threads", work.options.feed.io_threads},
                       {"seconds", seconds}},
          .machine = {},
          .full_rate = feed.measured.samples_per_second};
}

PlannedFeed read_planned_feed(const std::string& path, const PlanDemand& demand) {
  const nlohmann::ordered_json feed = read_feed(path);
  const FeedCost cost = feed_cost(feed);
  const nlohmann::ordered_json machine = feed.at("machine");
  return {.cost = cost,
          .model = even_feed(cost, demand),
          .settings = feed.at("settings"),
          .machine = machine,
          .full_rate = 1e3 * machine.value("cores_usable", 0) / cost.cpu_ms};
}

nlohmann::ordered_json results_of(const MachinePlan& plan, const FeedCost& cost) {
  return {{"cpu_ms_per_image", cost.cpu_ms},
          {"busy_cores", plan.busy_cores},
          {"cores", plan.cores},
          {"workers", plan.workers},
          {"images_per_second", plan.images_per_second},
          {"waiting_share", plan.waiting_share},
          {"ring_bytes", plan.ring_bytes},
          {"worker_bytes", plan.worker_bytes},
          {"slot_bytes_per_gpu", plan.slot_bytes},
          {"bus_bytes_per_second_per_gpu", plan.bus_bytes_per_second},
          {"storage_bytes_per_second", plan.storage_bytes_per_second},
          {"memory_bytes_per_second", plan.memory_bytes_per_second}};
}

// Runs the feed against emulated devices that ask for all that this machine is predicted to
// deliver, and adds how far the prediction is off.
void check_prediction(const FeedWork& work, const PlannedFeed& feed, const PlanDemand& demand,
                      double seconds, Report& report) {
  PlanDemand here = demand;
  here.gpus = std::clamp(static_cast<int>(std::ceil(feed.full_rate / demand.rate)), 1, demand.gpus);
  here.rate = std::min(demand.rate, feed.full_rate / here.gpus);
  const FeedChange devices = demanded_devices(here);
  const FeedWhatIf::Prediction predicted = feed.model.predict(devices);
  LoaderOptions options = work.options;
  options.batch_size = devices.rows;
  FeedRun how;
  how.demand = here.rate;
  how.seconds = seconds;
  how.devices = devices.devices;
  ProfiledRun run;
  const Profile profile = profile_emulated(work.source, work.augment, options, how, run);
  const RunMeasurements& measured = profile.measurements.measured;
  if (measured.steps == 0) {
    throw std::runtime_error(fmt::format(
        "--check: no step of {} samples came in {:g} s: give it longer", devices.rows, seconds));
  }
  const double off = predicted.samples_per_second / measured.samples_per_second - 1;
  report.tables.push_back({fmt::format("Check: {} emulated GPU{} at {} images/s", devices.devices,
                                       devices.devices > 1 ? "s" : "", significant(here.rate)),
                           {"", "predicted", "measured"},
                           {{"images/s", significant(predicted.samples_per_second),
                             significant(measured.samples_per_second)},
                            {"waiting", fmt::format("{:.1f} %", 100 * predicted.waiting_share),
                             fmt::format("{:.1f} %", 100 * measured.split.waiting_share())}}});
  report.notes.push_back(fmt::format(
      "The prediction for this machine is {:+.1f} % off what it delivered in {:.0f} s; {}.",
      100 * off, measured.seconds, headline(profile.verdict)));
  report.results["check"] = {{"gpus", devices.devices},
                             {"rate", here.rate},
                             {"batch", devices.rows},
                             {"seconds", measured.seconds},
                             {"steps", measured.steps},
                             {"predicted_images_per_second", predicted.samples_per_second},
                             {"measured_images_per_second", measured.samples_per_second},
                             {"off", off},
                             {"predicted_waiting_share", predicted.waiting_share},
                             {"measured_waiting_share", measured.split.waiting_share()},
                             {"limit", to_string(profile.verdict.limit)}};
}

// Shows what a data set has in each bucket.
void add_bucket_table(const AspectBuckets& buckets, Report& report) {
  Table table;
  table.title = "Aspect buckets";
  table.columns = {"width x height", "samples", "share", "cropped away"};
  auto listed = nlohmann::ordered_json::array();
  double cropped = 0;
  for (const AspectBuckets::Bucket& bucket : buckets.buckets()) {
    const double share =
        static_cast<double>(bucket.samples) / static_cast<double>(buckets.samples());
    cropped += share * bucket.cropped;
    table.rows.push_back({fmt::format("{} x {}", bucket.size.width, bucket.size.height),
                          fmt::format("{}", bucket.samples), fmt::format("{:.1f}%", 100 * share),
                          fmt::format("{:.1f}%", 100 * bucket.cropped)});
    listed.push_back({{"size", {bucket.size.width, bucket.size.height}},
                      {"samples", bucket.samples},
                      {"share", share},
                      {"cropped", bucket.cropped}});
  }
  report.tables.push_back(std::move(table));
  report.results["buckets"] = listed;
  report.results["cropped"] = cropped;
  report.results["left_out"] = buckets.left_out();
  report.notes.push_back(fmt::format(
      "The buckets crop {:.1f}% of the pictures away; {} of {} pictures are left out{}.",
      100 * cropped, buckets.left_out(), buckets.pictures(),
      buckets.left_out() > 0 ? ", because they are smaller than every bucket" : ""));
}

// Refuses the options of the measurement, because with --feed nothing is measured.
void refuse_measuring(const CLI::App& app) {
  std::set<std::string> plans = {"--help",  "--config",     "--gpus",     "--rate",
                                 "--batch", "--ring-depth", "--slots",    "--headroom",
                                 "--feed",  "--out",        "--json",     "--machine",
                                 "--cores", "--node-cores", "--link-gbit"};
  plans.insert(kLinkOptions.begin(), kLinkOptions.end());
  if (is_given(app, "--machine")) plans.insert("--model");
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = "--" + option->get_lnames().front();
    if (plans.count(name) > 0) continue;
    refuse_if_given(app, {name.c_str()}, "with --feed nothing is measured here");
  }
}

}  // namespace

int run_plan(int argc, char** argv) {
  BenchDataOptions data;
  PlanDemand demand;
  LinkOptions links;
  NodeDemand nodes;
  std::string feed_file;
  BucketChoice bucket_choice;
  double seconds = 4;
  std::optional<double> check;
  WhatIfChoice what_if;
  auto app = make_parser(
      "plan",
      "Calculates the machine that a number of GPUs needs: cores, memory, bus, storage and memory\n"
      "bandwidth. It starts from what an image costs, which is measured here, with the cores and\n"
      "the data that there are, or read from the result of an earlier `stoker bench feed --out`,\n"
      "and models the feed as `stoker profile` does. Other CPUs have other costs.\n"
      "--check runs the feed for a minute, and says how far the prediction was off.\n"
      "--what-if says which other way to feed the GPUs would be cheaper.\n"
      "With --node-cores it also says how many machines without GPUs are to help.\n"
      "With --machine it also predicts, by a simulation of the schedule of a training on the "
      "links\n"
      "of that machine, images/s and efficiency for 1 to all GPUs, weak and strong; resident\n"
      "batches against fed ones; the gap between steps with 0 to 3 staging slots; and a batch "
      "that\n"
      "is cut on the host or on GPUs, with the bytes over each link and the largest batch.",
      "  stoker plan --gpus 8 --rate 3000 --size 224 --data data/imagenette\n"
      "  stoker plan --gpus 8 --rate 3000 --data data/imagenette --model resnet50 --check\n"
      "  stoker plan --gpus 8 --rate 3000 --data data/imagenette --what-if all --price 0.04\n"
      "  stoker plan --gpus 8 --rate 3000 --feed results/feed.json\n"
      "  stoker plan --gpus 8 --rate 300 --data \"laion-{000..127}.tar\" --buckets 1024\n"
      "  stoker plan --gpus 8 --rate 3000 --feed results/feed.json --cores 64 --node-cores 32\n"
      "  stoker plan --machine 8xh100 --rate 3000 --model resnet50 --feed results/feed.json\n"
      "  stoker plan --machine 7gforce --rate 119.8 --batch 32 --model resnet50 --feed "
      "results/feed.json\n"
      "  stoker plan --machine mine.json --rate 500 --grad-mib 91 --grad-wire fp32,bf16\n");
  app->add_option("--gpus", demand.gpus,
                  "Number of GPUs to feed (default with --machine: all of its GPUs)")
      ->check(CLI::Range(1, 1 << 16))
      ->default_str("");
  app->add_option("--rate", demand.rate, "Images/s that each GPU trains")
      ->required()
      ->check(CLI::PositiveNumber);
  app->add_option("--batch", demand.batch, "Samples of each GPU's batch")
      ->check(CLI::Range(1, 1 << 20));
  app->add_option("--ring-depth", demand.ring_depth, "Batches that are decoded ahead, per GPU")
      ->check(CLI::Range(1, 1024));
  app->add_option("--slots", demand.slots, "Batches that are staged on a GPU")
      ->check(CLI::Range(0, 3));
  app->add_option("--headroom", demand.headroom,
                  "Share of the cores that is left to everything else")
      ->check(CLI::Range(0.0, 0.99));
  app->add_option("--feed", feed_file,
                  "feed.json to take the costs from (default: they are measured)");
  app->add_option("--seconds", seconds, "Seconds of a measurement, after its warm-up")
      ->check(CLI::Range(0.5, 3600.0));
  app->add_option("--check", check,
                  "Also run the feed for so many seconds against emulated GPUs that ask for what "
                  "this machine is to deliver, and say how far the prediction was off (without a "
                  "number: 60)")
      ->expected(0, 1)
      ->default_str("60")
      ->check(CLI::Range(0.5, 3600.0));
  add_what_if_options(*app, what_if);
  add_bench_data_options(*app, data);
  add_bucket_choice(*app, bucket_choice);
  add_link_options(*app, links);
  add_node_options(*app, nodes);
  BenchOutput output(*app);
  if (const auto code = parse_options(*app, argc, argv)) return *code;
  if (!feed_file.empty()) refuse_measuring(*app);
  check_link_options(*app, links);
  check_bucket_choice(*app, bucket_choice);
  check_what_if(*app, what_if);
  std::optional<LinkMachine> machine;
  if (!links.machine.empty()) {
    machine = machine_option(links.machine);
    if (!is_given(*app, "--gpus")) demand.gpus = static_cast<int>(machine->gpus.size());
  }

  output.begin("stoker plan", argc, argv);
  SharedBuckets buckets;
  Size row;
  std::optional<BenchData> files;
  if (feed_file.empty()) files.emplace(data);
  if (bucket_choice.is_wanted()) {
    buckets = bucket_choice.of(files->source(), data.data.decode());
    if (!data.augment.augment) data.augment.augment = kBucketStages;
    row = largest_of(buckets->sizes());
  }
  std::optional<FeedWork> work;
  if (files) work.emplace(work_of(data, files->source(), row, demand));
  PlannedFeed feed = work ? measure_feed(*work, seconds) : read_planned_feed(feed_file, demand);
  if (work) {
    feed.settings["data"] = files->describe();
    feed.machine = output.machine();
  }
  const FeedCost& cost = feed.cost;
  const MachinePlan plan = plan_machine(cost, feed.model, demand);
  const int cores = feed.machine.value("cores_usable", 0);
  const double gpus_fed = feed.full_rate * (1 - demand.headroom) / demand.rate;
  Report report;
  report.bench = "plan";
  report.settings = {{"gpus", demand.gpus},   {"rate", demand.rate},
                     {"batch", demand.batch}, {"ring_depth", demand.ring_depth},
                     {"slots", demand.slots}, {"headroom", demand.headroom},
                     {"feed", feed.settings}, {"feed_machine", feed.machine}};
  report.results = results_of(plan, cost);
  report.results["measured_machine_feeds_gpus"] = gpus_fed;
  report.tables.push_back(plan_table(plan, demand));
  if (is_given(*app, "--node-cores")) {
    nodes.local_cores = links.cores;
    const NodePlan others = plan_nodes(cost, demand, nodes);
    report.tables.push_back(node_table(others, nodes));
    report.results["cpu_nodes"] = others.nodes;
    report.results["cpu_nodes_images_per_second"] = others.remote_rate;
    report.results["network_bytes_per_second"] = others.bytes_per_second;
    report.results["network_suffices"] = others.link_suffices();
  }
  report.notes = {
      fmt::format("From {} ms of one core per image of {} x {} px ({}–{}), measured on: {}.",
                  significant(cost.cpu_ms), cost.size.width, cost.size.height,
                  significant(cost.cpu_ms_low), significant(cost.cpu_ms_high),
                  machine_line(feed.machine)),
      fmt::format("That machine's {} cores would feed {} such GPUs.", cores,
                  significant(gpus_fed, 2)),
      "Many cores cost more per image than few: memory bandwidth and clocks are shared. `stoker "
      "bench feed` shows the efficiency on this machine."};
  if (!what_if.alternatives.empty()) add_what_if(what_if, *work, demand, seconds, report);
  if (check) check_prediction(*work, feed, demand, *check, report);
  if (buckets) add_bucket_table(*buckets, report);
  if (machine) predict_links(links, *machine, cost, demand, data.augment.model, report);
  return output.finish(std::move(report));
}

}  // namespace stoker
