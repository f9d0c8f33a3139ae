// stoker receipt diff A B: compares what two runs were fed, how they were configured, and which
// weights came out.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "pipeline/receipt/diff.h"
#include "tools/command/command.h"
#include "tools/command/run_folder.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

// Returns a run's folder, given the folder or its receipt.
std::filesystem::path run_of(const std::string& path) {
  const std::filesystem::path given(path);
  return std::filesystem::is_directory(given) ? given : given.parent_path();
}

void require_receipt(const std::string& path) {
  const bool folder = std::filesystem::is_directory(path);
  const std::string file = folder ? path + "/receipt.json" : path;
  if (!std::filesystem::exists(file)) {
    throw std::invalid_argument(file + ": there is no receipt (a run's folder is expected)");
  }
}

struct RunDifference {
  ReceiptDifference pixels;
  NamedSample sample;  // of the pixels; both texts are empty if there is none
  ConfigDifference configuration;
  WeightDifference weights;
  bool same() const { return pixels.same && configuration.same() && weights.same(); }
};

std::string text_of(const std::vector<SettingDifference>& differences) {
  std::string text;
  for (const SettingDifference& each : differences) {
    text += fmt::format("{}{} {} and {}", text.empty() ? "" : ", ", each.name, each.a.dump(),
                        each.b.dump());
  }
  return text;
}

// Puts the sample's name at the end of the first line, which ends with its number.
std::string text_of(const ReceiptDifference& found, const NamedSample& sample) {
  std::string text = found.text;
  if (found.sample < 0) return text;
  const std::string& name = sample.name;
  text.insert(std::min(text.find('\n'), text.size()),
              fmt::format(" ({})", name.empty() ? "no name: " + sample.problem : name));
  return text;
}

std::string text_of(const ConfigDifference& found) {
  if (!found.unknown.empty()) return "not compared: " + found.unknown;
  const std::string others = found.others.empty() ? "" : "; others: " + text_of(found.others);
  if (found.same()) return "same in what decides the weights" + others;
  return "differ in " + text_of(found.deciding) + others;
}

std::string text_of(const WeightDifference& found) {
  if (!found.unknown.empty()) return "not compared: " + found.unknown;
  if (found.same()) return fmt::format("same in step {}, checksum {}", found.step, found.hash_a);
  return fmt::format("differ in step {}: checksums {} and {}", found.step, found.hash_a,
                     found.hash_b);
}

Json diff_json(const std::vector<SettingDifference>& differences) {
  Json list = Json::array();
  for (const SettingDifference& each : differences) {
    list.push_back({{"name", each.name}, {"a", each.a}, {"b", each.b}});
  }
  return list;
}

Json diff_json(const RunDifference& found) {
  return {{"same", found.same()},
          {"pixels",
           {{"same", found.pixels.same},
            {"epoch", found.pixels.epoch},
            {"step", found.pixels.step},
            {"sample", found.pixels.sample},
            {"name", found.sample.name},
            {"not_named", found.sample.problem},
            {"text", found.pixels.text}}},
          {"configuration",
           {{"same", found.configuration.same()},
            {"not_compared", found.configuration.unknown},
            {"deciding", diff_json(found.configuration.deciding)},
            {"others", diff_json(found.configuration.others)}}},
          {"weights",
           {{"same", found.weights.same()},
            {"not_compared", found.weights.unknown},
            {"step", found.weights.step},
            {"checksums", {found.weights.hash_a, found.weights.hash_b}}}}};
}

}  // namespace

int run_receipt(int argc, char** argv) {
  std::string first, second;
  bool json = false;
  auto app = make_parser(
      "receipt",
      "Compares two runs: the pixels that they were fed (by their receipts; it names the epoch,\n"
      "step and sample in which they first differ, with its name where the data of the first run "
      "can be\n"
      "opened), their configurations (config.json), and the weights\n"
      "of the newest step of which both have a checkpoint. The exit code is 1 if any of the three\n"
      "differs. Options that decide no weight (devices, threads, buffers, places) are listed, but\n"
      "they are no difference.",
      "  stoker receipt diff runs/a runs/b\n"
      "  stoker receipt diff runs/a/receipt.json /elsewhere/receipt.json --json\n");
  app->require_subcommand(1);
  CLI::App* diff = app->add_subcommand(
      "diff", "Says whether two runs are the same in pixels, configuration and weights.");
  diff->add_option("A", first, "A run's folder, or its receipt.json")->required();
  diff->add_option("B", second, "The other run's folder, or its receipt.json")->required();
  diff->add_flag("--json", json, "Print JSON");
  if (const auto code = parse_options(*app, argc, argv)) return *code;

  require_receipt(first);
  require_receipt(second);
  RunDifference found{.pixels = receipt_diff(first, second),
                      .sample = {},
                      .configuration = config_diff(run_of(first), run_of(second)),
                      .weights = weight_diff(run_of(first), run_of(second))};
  if (found.pixels.sample >= 0) found.sample = name_sample(first, second, found.pixels.sample);
  if (json) {
    fmt::print("{}\n", diff_json(found).dump(2));
  } else {
    fmt::print("pixels         {}\nconfiguration  {}\nweights        {}\n",
               text_of(found.pixels, found.sample), text_of(found.configuration),
               text_of(found.weights));
  }
  return found.same() ? kExitOk : kExitFound;
}

}  // namespace stoker
