// stoker receipt diff A B: were two runs fed the same pixels, and where do they part?

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "pipeline/receipt_diff.h"
#include "tools/command.h"

namespace stoker {
namespace {

void require_receipt(const std::string& path) {
  const bool folder = std::filesystem::is_directory(path);
  const std::string file = folder ? path + "/receipt.json" : path;
  if (!std::filesystem::exists(file)) {
    throw std::invalid_argument(file + ": there is no receipt (a run's folder is expected)");
  }
}

}  // namespace

int run_receipt(int argc, char** argv) {
  std::string first, second;
  bool json = false;
  auto app =
      make_parser("receipt",
                  "Compares the receipts of two runs: says whether both were fed the same pixels, "
                  "or names the\n"
                  "first epoch, step and sample where they part. Exit code 1 if they do.",
                  "  stoker receipt diff runs/a runs/b\n"
                  "  stoker receipt diff runs/a/receipt.json /elsewhere/receipt.json --json\n");
  app->require_subcommand(1);
  CLI::App* diff = app->add_subcommand(
      "diff", "Says whether two runs were fed the same pixels, or where they part.");
  diff->add_option("A", first, "A run's folder, or its receipt.json")->required();
  diff->add_option("B", second, "Another one")->required();
  diff->add_flag("--json", json, "Print JSON");
  if (const auto code = parse_options(*app, argc, argv)) return *code;

  require_receipt(first);
  require_receipt(second);
  const ReceiptDifference difference = receipt_diff(first, second);
  if (json) {
    const nlohmann::ordered_json result = {{"same", difference.same},
                                           {"epoch", difference.epoch},
                                           {"step", difference.step},
                                           {"sample", difference.sample},
                                           {"text", difference.text}};
    fmt::print("{}\n", result.dump(2));
  } else {
    fmt::print("{}\n", difference.text);
  }
  return difference.same ? kExitOk : kExitFound;
}

}  // namespace stoker
