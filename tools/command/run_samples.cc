#include "tools/command/run_samples.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/files/json_file.h"
#include "pipeline/source/subset_source.h"
#include "tools/command/run_diff.h"

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
  const RunSamples samples = read_run_samples(run);
  if (samples.data.data.empty() && samples.choice.blend.empty()) {
    throw std::runtime_error((run / "config.json").string() + " does not name the data");
  }
  SampleChoice choice = samples.choice;
  choice.weights.clear();  // names do not depend on how often samples come
  const auto open = [&](const std::string& path, const std::string&) {
    return open_path(samples.data, path, Split::train, "the data of " + run.string());
  };
  const ChosenSamples chosen = choose_samples(samples.data, choice, open);
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
        samples.choice.subset = one("subset");
        samples.choice.weights = one("weights");
        samples.choice.blend = options.value("blend", std::vector<std::string>());
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

}  // namespace stoker
