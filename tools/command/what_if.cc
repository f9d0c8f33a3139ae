#include "tools/command/what_if.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>

#include "bench/suite/feed_bench.h"
#include "decode/image_decoder.h"
#include "pipeline/cache/decoded_cache.h"
#include "pipeline/files/temporary_folder.h"
#include "pipeline/seek_index/build.h"
#include "pipeline/source/subset_source.h"
#include "tools/data/image_file_reader.h"
#include "tools/data/jpeg_writer.h"
#include "tools/data/sample_keys.h"
#include "tools/data/tar_writer.h"
#include "tools/machine/host_info.h"
#include "tools/machine/measured_cores.h"
#include "tools/option/augment_choice.h"
#include "tools/option/parser.h"
#include "train/engine/byte_text.h"
#include "train/model/models.h"
#include "train/model/recipe.h"

namespace stoker {
namespace {

// All alternatives are measured on the same samples: as many as come once in the warm-up, in which
// a cache fills, and at most so many.
constexpr int64_t kTrialSamples = 256;
constexpr int kFewestTrialRows = 32;
constexpr int kPackedQuality = 90;
constexpr double kMillion = 1e6, kSecondsPerHour = 3600;

// Why an alternative cannot be tried with this data or on this machine.
struct NotPossible : std::runtime_error {
  using std::runtime_error::runtime_error;
};

double number_of(const std::string& text, const std::string& option) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end && value > 0) return value;
  throw std::invalid_argument(fmt::format("{}: '{}' is not a number above 0", option, text));
}

int whole_number(const std::string& text, const std::string& option) {
  const double value = number_of(text, option);
  if (value == std::floor(value) && value <= 1 << 20) return static_cast<int>(value);
  throw std::invalid_argument(fmt::format("{}: '{}' is not a whole number", option, text));
}

const MeasuredCore& core_named(const std::string& name, const std::string& option) {
  std::string names;
  for (const MeasuredCore& core : kMeasuredCores) {
    if (core.name == name) return core;
    names += (names.empty() ? "" : ", ") + std::string(core.name);
  }
  throw std::invalid_argument(
      fmt::format("{}: '{}' is none of the measured cores: {}", option, name, names));
}

PixelPolicy pixels_named(const std::string& name, const std::string& option) {
  for (const PixelPolicy kind :
       {PixelPolicy::exact, PixelPolicy::exact_pillow12, PixelPolicy::fast}) {
    if (name == to_string(kind)) return kind;
  }
  throw std::invalid_argument(fmt::format("{}: '{}' is no value of --pixels", option, name));
}

// Null: this machine is not in the table.
const MeasuredCore* core_of_here() {
  const std::string cpu = read_host_info().cpu;
  for (const MeasuredCore& core : kMeasuredCores) {
    if (core.cpu == cpu) return &core;
  }
  return nullptr;
}

// Returns the picture with its shorter side `side`, as a JPEG; {}: it is not larger, or is bad.
std::vector<uint8_t> shrunk(ImageDecoder& decoder, std::span<const uint8_t> bytes, int side) {
  ImageInfo info;
  if (!decoder.info(bytes, info).ok()) return {};
  const int shorter = std::min(info.size.width, info.size.height);
  if (shorter <= side) return {};
  const auto scaled = [&](int length) {
    return static_cast<int>(std::lround(static_cast<double>(length) * side / shorter));
  };
  const Size size{scaled(info.size.width), scaled(info.size.height)};
  std::vector<uint8_t> pixels(size_t{3} * size.width * size.height);
  const MutableImageView out{pixels.data(), size.width, size.height, ptrdiff_t{3} * size.width};
  const CropSpec whole{.crop = {0, 0, info.size.width, info.size.height},
                       .resized = size,
                       .window = {0, 0, size.width, size.height}};
  if (!decoder.decode(bytes, whole, out).ok()) return {};
  return encode_jpeg({pixels.data(), size.width, size.height, ptrdiff_t{3} * size.width},
                     kPackedQuality);
}

// Writes the samples to a tar shard as `stoker pack` does, and with `side` > 0 smaller. Returns how
// many became smaller.
int64_t write_shard(const Source& source, int side, const std::string& path) {
  const SampleKeys keys(source);
  ImageFileReader reader(source);
  ImageDecoder decoder;
  TarShardWriter shard(path);
  ImageFile image;
  Finding finding;
  int64_t shrunk_ones = 0;
  for (SampleId id = 0; id < source.size(); ++id) {
    if (!reader.read(id, image, finding)) continue;
    const std::vector<uint8_t> smaller =
        side > 0 ? shrunk(decoder, image.bytes, side) : std::vector<uint8_t>();
    const std::string key = keys.key(id);
    if (smaller.empty()) {
      shard.add({key, image.name, image.extension, source.label(id), image.bytes});
    } else {
      shard.add({key, image.name, "jpg", source.label(id), smaller});
      ++shrunk_ones;
    }
  }
  shard.finish();
  return shrunk_ones;
}

// A way to feed the GPUs, with what it takes.
struct Alternative {
  std::string what;
  FeedCost cost;
  PlanDemand demand;
  MachinePlan plan;
  std::string core;  // of the table; "": of this machine
  std::string remark;

  double core_hours() const {  // for a million images
    return plan.wanted_cores / (demand.gpus * demand.rate) * kMillion / kSecondsPerHour;
  }
};

// The samples, and what they cost as they are.
class Trial {
 public:
  Trial(const FeedWork& work, const PlanDemand& demand, double seconds)
      : work_(work),
        demand_(demand),
        seconds_(seconds),
        rows_(std::max(work.options.batch_size, kFewestTrialRows)),
        samples_(work.source,
                 std::min<int64_t>(kTrialSamples, int64_t{rows_} * (demand.ring_depth + 5))),
        base_(measure(samples_, work.augment, work.options)),
        bytes_(mean_sample_bytes(samples_)) {}

  const FeedWork& work() const { return work_; }
  const PlanDemand& demand() const { return demand_; }
  const Source& samples() const { return samples_; }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  // Returns what all of the data have, where the samples have `bytes`.
  double of_all(double bytes) const {
    return bytes / static_cast<double>(samples_.size()) * static_cast<double>(work_.source.size());
  }

  Alternative as_it_is(const std::string& what, const PlanDemand& demand) const {
    return planned(what, base_, bytes_, work_.augment.output, demand);
  }
  Alternative tried(const std::string& what, const Source& source, const AugmentSpec& augment,
                    const LoaderOptions& options) const {
    return planned(what, measure(source, augment, options), mean_sample_bytes(source),
                   augment.output, demand_);
  }
  // The measured feed, on cores that take `factor` times as long.
  Alternative on_cores(const std::string& what, double factor) const {
    MeasuredFeed feed = base_;
    for (double& seconds : feed.measured.fill_cpu_s) seconds *= factor;
    feed.measured.samples_per_second /= factor;
    for (double* ms : {&feed.cpu_ms, &feed.cpu_ms_low, &feed.cpu_ms_high}) *ms *= factor;
    return planned(what, feed, bytes_, work_.augment.output, demand_);
  }

 private:
  MeasuredFeed measure(const Source& source, const AugmentSpec& augment,
                       LoaderOptions options) const {
    options.batch_size = rows_;
    return measure_full_feed(source, augment, options, seconds_);
  }
  static Alternative planned(const std::string& what, const MeasuredFeed& feed, double bytes,
                             Size size, const PlanDemand& demand) {
    const FeedCost cost = feed_cost(feed, bytes, size);
    return {.what = what,
            .cost = cost,
            .demand = demand,
            .plan = plan_machine(cost, feed.model(), demand),
            .core = "",
            .remark = ""};
  }

  const FeedWork& work_;
  const PlanDemand demand_;
  const double seconds_;
  const TemporaryFolder folder_;
  const int rows_;
  const SubsetSource samples_;
  const MeasuredFeed base_;
  const double bytes_;
};

Alternative try_shard(const Trial& trial, int side, const std::string& what) {
  if (trial.samples().annotations().any() || !trial.samples().info().pictures.empty()) {
    throw NotPossible("a shard would not have what lies on the pictures, or further pictures");
  }
  const std::string path = trial.path(fmt::format("packed-{}.tar", side));
  if (write_shard(trial.samples(), side, path) == 0 && side > 0) {
    throw NotPossible(fmt::format("no picture's shorter side is longer than {} px", side));
  }
  const auto shard = open_source(path, {.cache_dir = ""});
  Alternative tried = trial.tried(what, *shard, trial.work().augment, trial.work().options);
  tried.remark = decimal_bytes(trial.of_all(tried.cost.sample_bytes *
                                            static_cast<double>(trial.samples().size()))) +
                 " of files";
  return tried;
}

Alternative try_index(const Trial& trial, const std::string&) {
  const std::string path = trial.path("seek-index.bin");
  const SeekIndexOptions all{.workers = trial.work().options.feed.workers,
                             .go_on = [](int64_t, const SeekIndexTotals&) { return true; }};
  if (trial.samples().encoding() != SampleEncoding::image_file) {
    throw NotPossible("the samples are no image files");
  }
  const auto made = build_seek_indexes(trial.samples(), path, all);
  if (!made || made->indexed == 0) throw NotPossible("no picture is a JPEG that can have one");
  LoaderOptions options = trial.work().options;
  options.feed.seek_index = path;
  Alternative tried =
      trial.tried("with seek indexes", trial.samples(), trial.work().augment, options);
  tried.remark =
      decimal_bytes(trial.of_all(static_cast<double>(made->file_bytes))) + " more of files";
  return tried;
}

Alternative try_cached(const Trial& trial, const std::string& value) {
  const double share = number_of(value, "");
  const FeedWork& work = trial.work();
  const std::string refusal =
      decoded_cache_refusal(trial.samples(), work.augment, work.options.feed.decode);
  if (!refusal.empty()) throw NotPossible("the cache of decoded pictures" + refusal);
  const auto all = DecodedCache({.bytes = int64_t{1} << 40})
                       .stats(trial.samples(), work.augment, work.options.feed.decode);
  const double bytes = share * static_cast<double>(all.samples * all.place_bytes);
  LoaderOptions options = work.options;
  options.feed.cache = std::make_shared<DecodedCache>(
      DecodedCacheOptions{.bytes = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(bytes)))});
  Alternative tried = trial.tried(fmt::format("{:g} % of the decoded pictures kept", 100 * share),
                                  trial.samples(), work.augment, options);
  tried.remark = decimal_bytes(trial.of_all(bytes)) + " of memory or disk";
  return tried;
}

Alternative try_pixels(const Trial& trial, const std::string& value) {
  LoaderOptions options = trial.work().options;
  options.feed.decode.pixels = pixels_named(value, "");
  return trial.tried("--pixels " + value, trial.samples(), trial.work().augment, options);
}

Alternative try_augment(const Trial& trial, const std::string& what, const AugmentSpec& augment) {
  augment.validate();
  return trial.tried(what, trial.samples(), augment, trial.work().options);
}

Alternative try_core(const Trial& trial, const std::string& value) {
  const MeasuredCore& other = core_named(value, "");
  const MeasuredCore* const here = core_of_here();
  if (here == nullptr) {
    throw NotPossible(fmt::format("this machine's CPU, {}, is not among the measured ones",
                                  read_host_info().cpu));
  }
  Alternative derived =
      trial.on_cores("cores of " + std::string(other.cpu), other.image_us / here->image_us);
  derived.core = other.name;
  derived.remark = fmt::format("{:g} us where this machine's take {:g}: {}", other.image_us,
                               here->image_us, other.source);
  return derived;
}

// Forms of --what-if, each with a function that tries it.
struct AlternativeKind {
  const char* name;
  const char* value;  // in the help; "": takes none
  const char* help;
  // Throws before anything is measured if the value makes no sense.
  void (*check)(const std::string& value, const std::string& option);
  Alternative (*make)(const Trial& trial, const std::string& value);
};

void no_value(const std::string&, const std::string&) {}
void check_count(const std::string& value, const std::string& option) {
  whole_number(value, option);
}
void check_rate(const std::string& value, const std::string& option) { number_of(value, option); }
void check_share(const std::string& value, const std::string& option) {
  if (number_of(value, option) > 1) {
    throw std::invalid_argument(fmt::format("{}: {} is above 1", option, value));
  }
}
void check_pixels(const std::string& value, const std::string& option) {
  pixels_named(value, option);
}
void check_stages(const std::string& value, const std::string&) { StageList{value}; }
void check_model(const std::string& value, const std::string& option) {
  const std::vector<std::string> known = list_models();
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  throw std::invalid_argument(fmt::format("{}: '{}' is no model", option, value));
}
void check_core(const std::string& value, const std::string& option) { core_named(value, option); }

const AlternativeKind kAlternatives[] = {
    {"index", "", "with seek indexes", no_value, try_index},
    {"tar", "", "packed as tar shards", no_value,
     [](const Trial& trial, const std::string&) { return try_shard(trial, 0, "tar shards"); }},
    {"pack", "PX", "packed with a shorter side of PX at most, as JPEGs of quality 90", check_count,
     [](const Trial& trial, const std::string& value) {
       return try_shard(trial, whole_number(value, ""), "packed at " + value + " px");
     }},
    {"cached", "SHARE", "a share of the decoded pictures kept", check_share, try_cached},
    {"pixels", "KIND", "another --pixels", check_pixels, try_pixels},
    {"augment", "STAGES", "another --augment", check_stages,
     [](const Trial& trial, const std::string& value) {
       AugmentSpec augment = trial.work().augment;
       augment.set_stages(value);
       augment.output = own_size(augment.stages).value_or(augment.output);
       return try_augment(trial, "--augment " + value, augment);
     }},
    {"model", "NAME", "the recipe of a model", check_model,
     [](const Trial& trial, const std::string& value) {
       return try_augment(trial, "the recipe of " + value, default_recipe(value).train);
     }},
    {"size", "PX", "another --size", check_count,
     [](const Trial& trial, const std::string& value) {
       const int side = whole_number(value, "");
       return try_augment(trial, "--size " + value, trial.work().augment.with_output({side, side}));
     }},
    {"gpus", "N", "another number of GPUs", check_count,
     [](const Trial& trial, const std::string& value) {
       PlanDemand demand = trial.demand();
       demand.gpus = whole_number(value, "");
       return trial.as_it_is(value + " GPUs", demand);
     }},
    {"rate", "R", "another rate of each", check_rate,
     [](const Trial& trial, const std::string& value) {
       PlanDemand demand = trial.demand();
       demand.rate = number_of(value, "");
       return trial.as_it_is(value + " images/s each", demand);
     }},
    {"cores", "NAME", "other cores, of those that this project has measured", check_core,
     try_core}};

struct Wanted {
  const AlternativeKind* kind;
  std::string value;
};

Wanted parse_alternative(const std::string& text) {
  const size_t at = std::min(text.find('='), text.size());
  const std::string name = text.substr(0, at), value = text.substr(std::min(at + 1, text.size()));
  std::string names = "all";
  for (const AlternativeKind& kind : kAlternatives) {
    const bool takes = *kind.value != '\0';
    if (name == kind.name && takes == (at < text.size()) && takes != value.empty()) {
      kind.check(value, "--what-if " + name);
      return {&kind, value};
    }
    names += fmt::format(", {}{}{}", kind.name, takes ? "=" : "", kind.value);
  }
  throw std::invalid_argument(fmt::format("--what-if: '{}' is none of {}", text, names));
}

// Those of "all": what needs nothing to be said.
std::vector<std::string> usual_alternatives(const FeedWork& work) {
  std::vector<std::string> all = {"index", "tar", "pack=512", "cached=0.5", "cached=1"};
  const bool fast = work.options.feed.decode.pixels == PixelPolicy::fast;
  all.emplace_back(fast ? "pixels=exact" : "pixels=fast");
  const MeasuredCore* const here = core_of_here();
  for (const MeasuredCore& core : kMeasuredCores) {
    if (&core != here) all.push_back("cores=" + std::string(core.name));
  }
  return all;
}

// Prices of a core for an hour by names of the table; "": of this machine.
std::map<std::string, double> parse_prices(const std::vector<std::string>& texts) {
  std::map<std::string, double> prices;
  for (const std::string& text : texts) {
    const size_t at = text.find('=');
    const std::string name = at == std::string::npos ? "" : text.substr(0, at);
    if (!name.empty()) core_named(name, "--price");
    prices[name] = number_of(at == std::string::npos ? text : text.substr(at + 1), "--price");
  }
  return prices;
}

// Returns what a million images cost; nothing where the price of its cores is not known.
std::optional<double> cost_of(const Alternative& each,
                              const std::map<std::string, double>& prices) {
  const auto price = prices.find(each.core);
  if (price == prices.end()) return {};
  return each.core_hours() * price->second;
}

void report_alternatives(const std::vector<Alternative>& all,
                         const std::map<std::string, double>& prices, Report& report) {
  Table table{"What if", {"", "cores", "core hours per million images"}, {}};
  if (!prices.empty()) table.columns.emplace_back("cost per million");
  for (const char* column : {"CPU ms per image", "storage, GB/s", "and"}) {
    table.columns.emplace_back(column);
  }
  auto list = nlohmann::ordered_json::array();
  for (const Alternative& each : all) {
    const auto cost = cost_of(each, prices);
    std::vector<std::string> row = {each.what, std::to_string(each.plan.cores),
                                    significant(each.core_hours())};
    if (!prices.empty()) row.push_back(cost ? significant(*cost) : "no price");
    row.push_back(fmt::format("{} ({}–{})", significant(each.cost.cpu_ms),
                              significant(each.cost.cpu_ms_low),
                              significant(each.cost.cpu_ms_high)));
    row.push_back(significant(1e-9 * each.plan.storage_bytes_per_second));
    row.push_back(each.remark);
    table.rows.push_back(row);
    list.push_back({{"what", each.what},
                    {"gpus", each.demand.gpus},
                    {"rate", each.demand.rate},
                    {"cores", each.plan.cores},
                    {"busy_cores", each.plan.busy_cores},
                    {"workers", each.plan.workers},
                    {"cpu_ms_per_image", each.cost.cpu_ms},
                    {"cpu_ms_per_image_low", each.cost.cpu_ms_low},
                    {"cpu_ms_per_image_high", each.cost.cpu_ms_high},
                    {"core_hours_per_million", each.core_hours()},
                    {"cost_per_million", cost ? nlohmann::ordered_json(*cost) : nullptr},
                    {"storage_bytes_per_second", each.plan.storage_bytes_per_second},
                    {"remark", each.remark}});
  }
  report.tables.push_back(std::move(table));
  report.results["what_if"] = list;
}

}  // namespace

void add_what_if_options(CLI::App& app, WhatIfChoice& choice) {
  std::string help =
      "Also say what another way to feed the GPUs would cost, measured on up to 256 of the "
      "samples; "
      "several times. ";
  for (const AlternativeKind& kind : kAlternatives) {
    help += fmt::format("{}{}{}: {}; ", kind.name, *kind.value != '\0' ? "=" : "", kind.value,
                        kind.help);
  }
  app.add_option("--what-if", choice.alternatives,
                 help + "all: those that need no more words, with pack=512, cached=0.5 and 1")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->default_str("");
  std::string names;
  for (const MeasuredCore& core : kMeasuredCores) {
    names += (names.empty() ? "" : ", ") + std::string(core.name);
  }
  app.add_option(
         "--price", choice.prices,
         fmt::format("Price of one of this machine's cores for an hour, in any currency; "
                     "NAME=PRICE: of one of the cores of --what-if cores={} (with --what-if)",
                     names))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->default_str("");
}

void check_what_if(const CLI::App& app, const WhatIfChoice& choice) {
  if (choice.alternatives.empty()) refuse_if_given(app, {"--price"}, "it is for --what-if");
  for (const std::string& text : choice.alternatives) {
    if (text != "all") parse_alternative(text);
  }
  parse_prices(choice.prices);
}

void add_what_if(const WhatIfChoice& choice, const FeedWork& work, const PlanDemand& demand,
                 double seconds, Report& report) {
  const auto prices = parse_prices(choice.prices);
  std::vector<std::string> texts;
  for (const std::string& text : choice.alternatives) {
    const std::vector<std::string> more =
        text == "all" ? usual_alternatives(work) : std::vector<std::string>{text};
    texts.insert(texts.end(), more.begin(), more.end());
  }
  const Trial trial(work, demand, seconds);
  std::vector<Alternative> all = {trial.as_it_is("as it is", demand)};
  std::map<std::string, std::vector<std::string>> not_possible;  // by the reason
  for (const std::string& text : texts) {
    const Wanted wanted = parse_alternative(text);
    try {
      all.push_back(wanted.kind->make(trial, wanted.value));
    } catch (const NotPossible& error) {
      not_possible[error.what()].push_back(text);
    }
  }
  for (const auto& [why, which] : not_possible) {
    report.notes.push_back(fmt::format("What if {}: {}.", fmt::join(which, ", "), why));
  }
  const auto order = [&](const Alternative& each) {
    const auto cost = cost_of(each, prices);
    return std::pair(!prices.empty() && !cost, cost.value_or(each.core_hours()));
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Alternative& a, const Alternative& b) { return order(a) < order(b); });
  report_alternatives(all, prices, report);
  report.notes.push_back(fmt::format(
      "What if: measured on {} of {} samples, {:g} s each, with files in the page cache; {} costs "
      "least.",
      trial.samples().size(), work.source.size(), seconds, all.front().what));
}

}  // namespace stoker
