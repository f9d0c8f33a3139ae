#include "tools/command/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/files/json_file.h"
#include "pipeline/source/subset_source.h"
#include "tools/option/train_options.h"
#include "train/checkpoint/checkpoint.h"
#include "train/model/recipe_json.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kIdsOfAReceipt = int64_t{1} << 32;  // it keeps 32 bits of each

fs::path run_folder(const fs::path& path) {
  return fs::is_directory(path) ? path : path.parent_path();
}

// A receipt's facts about its samples.
struct ReceiptSamples {
  std::string labels, subset;
  int64_t count = 0;
  bool operator==(const ReceiptSamples&) const = default;
};

std::string words(const ReceiptSamples& samples) {
  return fmt::format("{} samples with labels {}{}{}", samples.count, samples.labels,
                     samples.subset.empty() ? "" : ", subset ", samples.subset);
}

ReceiptSamples receipt_samples(const fs::path& path) {
  const fs::path file = fs::is_directory(path) ? path / "receipt.json" : path;
  return read_json_file<nlohmann::json>(
      file.string(), [](const nlohmann::json& json) -> ReceiptSamples {
        const nlohmann::json& policies = json.at("policies");
        const std::string samples = policies.at("samples");
        int64_t count = 0;
        if (std::from_chars(samples.data(), samples.data() + samples.size(), count).ec !=
            std::errc{}) {
          throw std::runtime_error("its samples are no number but '" + samples + "'");
        }
        return {policies.at("labels"), policies.value("subset", ""), count};
      });
}

std::string open_name(const fs::path& run, const ReceiptSamples& wanted, int64_t sample) {
  RunSamples samples = read_run_samples(run);
  samples.choice.weights.clear();  // names do not depend on how often samples come
  const ChosenSamples chosen = open_run_samples(run, samples);
  const SubsetSource source(chosen.source(), samples.limit);
  const ReceiptSamples found{hex64(source.labels_digest()), chosen.subset, source.size()};
  if (found != wanted || sample >= source.size()) {
    throw std::runtime_error(fmt::format(
        "the data of {} are not what they were: there are {} now, and the receipt is of {}",
        run.string(), words(found), words(wanted)));
  }
  return source.name(sample);
}

}  // namespace

ChosenSamples open_run_samples(const fs::path& run, const RunSamples& samples) {
  if (samples.data.data.empty() && samples.choice.blend.empty()) {
    throw std::runtime_error((run / "config.json").string() + " does not name the data");
  }
  return choose_samples(
      samples.data, samples.choice, [&](const std::string& path, const std::string&) {
        return open_path(samples.data, path, Split::train, "the data of " + run.string());
      });
}

TrainOptions read_run_options(const fs::path& run) {
  return read_json_file<nlohmann::json>(
      (run / "config.json").string(), [](const nlohmann::json& config) {
        TrainOptions options;
        options.recipe = recipe_from_json(config.at("recipe"));
        const bool bf16 = config.at("precision") == "bf16";
        options.recipe.precision = bf16 ? Precision::bf16 : Precision::fp32;
        options.seed = config.at("seed");
        options.init = config.value("init", "");
        options.limit_train = config.value("limit_train", int64_t{0});
        options.accumulate = whole_number<int>(config.at("accumulate"));
        options.sync_batch_norm = config.value("sync_batch_norm", false);
        options.reduce = parse_reduce(config.at("reduce"));
        options.grad_wire = parse_grad_wire(config.value("grad_wire", "fp32"));
        options.replicas =
            whole_number<int>(config.at("devices")) * whole_number<int>(config.at("processes"));
        options.subset = config.at("data").value("subset", "");
        DataOptions decode;
        decode.pixels = config.at("pixels");
        decode.exif = config.at("exif");
        decode.max_pixels = config.at("max_pixels");
        options.feed.decode = decode.decode();
        return options;
      });
}

RunSamples read_run_samples(const fs::path& run) {
  return read_json_file<nlohmann::json>(
      (run / "config.json").string(), [](const nlohmann::json& config) {
        RunSamples samples;
        samples.limit = config.value("limit_train", int64_t{0});
        const nlohmann::json data = config.value("data", nlohmann::json::object());
        samples.subset = data.value("subset", "");
        samples.order = data.value("order", "");
        const nlohmann::json options = data.value("options", nlohmann::json::object());
        const auto one = [&](const char* name) {
          return options.contains(name) ? options.at(name).at(0).get<std::string>() : "";
        };
        samples.data.data = one("data");
        samples.data.image_from = one("image_from");
        samples.data.label_from = one("label_from");
        StoreOptionGroup& store = samples.data.store;
        store.options.endpoint = one("store_endpoint");
        store.options.region = one("store_region");
        store.options.profile = one("store_profile");
        store.options.ca_file = one("store_ca");
        store.options.anonymous = options.contains("store_anonymous");
        if (options.contains("store_style")) store.style = one("store_style");
        const auto all = [&](const char* name) {
          return options.value(name, std::vector<std::string>());
        };
        samples.data.targets_from = all("target_from");
        samples.data.objects = one("objects");
        samples.data.objects_from = one("objects_from");
        samples.data.label_image_from = one("label_image_from");
        samples.data.pictures_from = all("picture_from");
        samples.choice.shuffle_blocks = one("shuffle_blocks");
        samples.choice.subset = one("subset");
        samples.choice.weights = one("weights");
        samples.choice.blend = all("blend");
        return samples;
      });
}

NamedSample name_sample(const fs::path& a, const fs::path& b, int64_t sample) {
  try {
    const ReceiptSamples of_a = receipt_samples(a), of_b = receipt_samples(b);
    if (of_a != of_b) {
      return {"", "the runs were fed from different samples"};
    }
    if (of_a.count > kIdsOfAReceipt) {
      return {"", "a receipt keeps 32 bits of a sample's number, and there are more samples"};
    }
    const fs::path run = run_folder(a);
    if (!fs::exists(run / "config.json")) {
      return {"", run.string() + " has no config.json, which names the data"};
    }
    return {open_name(run, of_a, sample), ""};
  } catch (const std::exception& error) {
    return {"", error.what()};
  }
}

namespace {

namespace fs = std::filesystem;

// Settings of config.json that change no weight: N replicas train as one, whatever feeds them.
// Every setting that is not listed decides, a new one included.
const std::set<std::string> kNotDeciding = {
    "checkpoint_steps", "data.eval",  "data.eval_samples", "data.train", "devices",   "io_threads",
    "keep_checkpoints", "libraries",  "limit_eval",        "max_bad",    "max_steps", "processes",
    "reduce",           "ring_depth", "seek_index",        "slots",      "threads",   "version",
    "workers"};
// The options that named the data: the same data may have other names.
const std::string kDataOptions = "data.options.";
// The traffic between replicas: it follows from their number.
const std::string kBytes = "bytes_per_step.";
// Text that is derived from the other settings.
const std::string kPlan = "plan";

// Flattens an object to {"recipe.optimizer.learning_rate": 0.1, ...}; a list is one value.
void flatten(const nlohmann::json& json, const std::string& name,
             std::map<std::string, nlohmann::json>& found) {
  if (!json.is_object()) {
    found.emplace(name, json);
    return;
  }
  for (const auto& [key, value] : json.items()) {
    flatten(value, name.empty() ? key : name + "." + key, found);
  }
}

std::map<std::string, nlohmann::json> settings_of(const fs::path& run) {
  std::map<std::string, nlohmann::json> found;
  read_json_file<nlohmann::json>((run / "config.json").string(),
                                 [&found](const nlohmann::json& json) {
                                   if (!json.is_object())
                                     throw std::runtime_error("it is no object");
                                   flatten(json, "", found);
                                   return 0;
                                 });
  found.erase(kPlan);
  return found;
}

// Returns the folders of checkpoints of each model of a run.
std::vector<fs::path> model_folders(const fs::path& run) {
  const int replicas = kept_replicas(run.string());
  if (replicas == 0) return {checkpoint_folder(run.string())};
  std::vector<fs::path> folders;
  for (int i = 0; i < replicas; ++i) folders.emplace_back(checkpoint_folder(run.string(), i));
  return folders;
}

// Returns the steps that have a checkpoint.
std::set<int64_t> checkpoint_steps(const fs::path& folder) {
  constexpr std::string_view kPrefix = "step_";
  std::set<int64_t> steps;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    int64_t step = 0;
    const char* end = name.data() + name.size();
    if (name.starts_with(kPrefix) &&
        std::from_chars(name.data() + kPrefix.size(), end, step).ptr == end &&
        fs::exists(entry.path() / "trainer.json")) {
      steps.insert(step);
    }
  }
  return steps;
}

std::string weights_hash(const fs::path& folder, int64_t step) {
  std::string number = std::to_string(step);
  number.insert(0, number.size() < 8 ? 8 - number.size() : 0, '0');
  const fs::path path = folder / ("step_" + number) / "trainer.json";
  return read_json_file<nlohmann::json>(
      path.string(), [](const nlohmann::json& json) -> std::string {
        return json.at("files").at("model.safetensors").at("fnv1a");
      });
}

std::string without_file(const fs::path& a, const fs::path& b, const std::string& file) {
  for (const fs::path& run : {a, b}) {
    if (!fs::exists(run / file)) return run.string() + " has no " + file;
  }
  return "";
}

}  // namespace

ConfigDifference config_diff(const fs::path& a, const fs::path& b) {
  ConfigDifference found;
  found.unknown = without_file(a, b, "config.json");
  if (!found.unknown.empty()) return found;
  const auto of_a = settings_of(a), of_b = settings_of(b);
  std::set<std::string> names;
  for (const auto& [name, value] : of_a) names.insert(name);
  for (const auto& [name, value] : of_b) names.insert(name);
  for (const std::string& name : names) {
    const auto x = of_a.find(name), y = of_b.find(name);
    const nlohmann::json in_a = x == of_a.end() ? nlohmann::json() : x->second;
    const nlohmann::json in_b = y == of_b.end() ? nlohmann::json() : y->second;
    if (in_a == in_b) continue;
    const bool decides = !kNotDeciding.contains(name) && !name.starts_with(kDataOptions) &&
                         !name.starts_with(kBytes);
    (decides ? found.deciding : found.others).push_back({name, in_a, in_b});
  }
  return found;
}

WeightDifference weight_diff(const fs::path& a, const fs::path& b) {
  WeightDifference found;
  const std::vector<fs::path> of_a = model_folders(a), of_b = model_folders(b);
  if (of_a.size() != of_b.size()) {
    found.unknown = "they have " + std::to_string(of_a.size()) + " and " +
                    std::to_string(of_b.size()) + " models";
    return found;
  }
  std::set<int64_t> steps = checkpoint_steps(of_a.front());
  for (const std::vector<fs::path>& folders : {of_a, of_b}) {
    for (const fs::path& folder : folders) {
      std::erase_if(steps,
                    [all = checkpoint_steps(folder)](int64_t s) { return !all.contains(s); });
    }
  }
  if (steps.empty()) {
    found.unknown = "no step has a checkpoint in both";
    return found;
  }
  found.step = *steps.rbegin();
  for (size_t i = 0; i < of_a.size(); ++i) {
    const std::string separator = i == 0 ? "" : " ";
    found.hash_a += separator + weights_hash(of_a[i], found.step);
    found.hash_b += separator + weights_hash(of_b[i], found.step);
  }
  return found;
}

}  // namespace stoker
