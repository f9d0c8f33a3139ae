// stoker rewind: a step of a run again, with its rows as they were fed, and what they did.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "pipeline/files/printable_name.h"
#include "staging/allowed_cores.h"
#include "tools/command/command.h"
#include "tools/command/rewind_ranks.h"
#include "tools/command/rewind_report.h"
#include "tools/command/run_folder.h"
#include "tools/data/output_file.h"

namespace stoker {
namespace {

constexpr size_t kSpikesShown = 10;
constexpr int kGradientParts = 16;  // a pass each

struct RewindArguments {
  std::string run;
  int64_t step = -1;
  bool spike = false, replay = false;
  std::vector<std::string> without;
  size_t count = 32;
  std::string json, page;
  std::string rank, list, rest;
  int threads = 0;
};

void add_rewind_options(CLI::App& app, RewindArguments& arguments) {
  app.add_option("run", arguments.run, "Folder of a run of stoker train")->required();
  app.add_option("--step", arguments.step,
                 "The step, counted from 0 over all epochs, as in receipts and messages. A row of "
                 "metrics.jsonl with \"step\": S ends with step S - 1")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 53));
  app.add_flag("--spike", arguments.spike,
               "List the steps whose loss or gradient norm stands out from the 25 before and the "
               "25 behind them, and rewind the first one, or --step");
  app.add_flag("--replay", arguments.replay,
               "Train the steps from the newest checkpoint before the step once more, and say how "
               "much of the loss and of the gradient each row carries");
  app.add_option("--without", arguments.without,
                 "NAME or number of a sample, several times: what the step would have been with "
                 "weight 0 for it; replays")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->default_str("");
  app.add_option("--count", arguments.count,
                 "Rows on the terminal and on the page; the JSON file has all")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--rank", arguments.rank,
                 "Rank the samples over the whole run instead. hardest: by their mean loss; never: "
                 "those that were never right, most often by a wrong label (both need train "
                 "--row-losses); duplicates: those whose bytes another sample had before (reads "
                 "all data)")
      ->check(CLI::IsMember({"hardest", "never", "duplicates"}));
  app.add_option("--list", arguments.list,
                 "File to write with all samples that --rank names, in its order: a list for train "
                 "--subset");
  app.add_option("--rest", arguments.rest, "The same with all samples that it does not name");
  app.add_option("--json", arguments.json, "JSON file to write");
  app.add_option("--out,-o", arguments.page, "HTML file to write, with the pictures");
  app.add_option("--threads", arguments.threads,
                 "Threads that decode and that compute. 0 takes one per core")
      ->check(CLI::Range(0, 1024));
}

void check_rewind(const CLI::App& app, const RewindArguments& arguments) {
  if (!std::filesystem::exists(arguments.run + "/config.json")) {
    throw std::invalid_argument(arguments.run +
                                ": there is no config.json (the folder of a run is expected)");
  }
  if (is_given(app, "--rank")) {
    refuse_if_given(app, {"--step", "--spike", "--replay", "--without", "--json", "--out"},
                    "--rank is of the whole run");
    return;
  }
  refuse_if_given(app, {"--list", "--rest"}, "they are of --rank");
  if (!is_given(app, "--step") && !arguments.spike) {
    throw std::invalid_argument("--step, --spike or --rank is required");
  }
}

std::vector<Spike> spikes_of_run(const std::string& run) {
  const std::vector<StepRow> steps = read_steps(run);
  if (steps.empty()) {
    throw std::runtime_error(run + " has no steps.bin: its training kept no figures of steps");
  }
  return find_spikes(steps);
}

// Returns the rows of each sample that is left out.
std::vector<std::vector<int>> rows_without(const FedStep& step,
                                           const std::vector<std::string>& names) {
  std::vector<std::vector<int>> groups;
  for (const std::string& name : names) {
    std::vector<int>& rows = groups.emplace_back();
    for (int row = 0; row < step.rows(); ++row) {
      const SampleId id = step.batch().ids()[row];
      if (step.batch().weights()[row] > 0 &&
          (std::to_string(id) == name || step.source().name(id) == name)) {
        rows.push_back(row);
      }
    }
    if (rows.empty()) {
      throw std::invalid_argument("--without: no row of this step that counts is '" + name + "'");
    }
  }
  return groups;
}

std::vector<RowLoss> kept_losses(const std::string& run, int64_t step, int rows) {
  std::vector<RowLoss> losses(static_cast<size_t>(rows));
  RowLossFile file(run, rows);
  if (file.count() == 0 || !file.find(step, losses)) return {};
  return losses;
}

std::optional<StepRow> kept_step(const std::string& run, int64_t step) {
  const std::vector<StepRow> steps = read_steps(run);
  const auto found = std::ranges::lower_bound(steps, step, {}, &StepRow::step);
  if (found == steps.end() || found->step != step) return std::nullopt;
  return *found;
}

// A run, opened again.
struct OpenedRun {
  ChosenSamples samples;
  TrainOptions options;
  RunPlace place;
};

OpenedRun open_run(const RewindArguments& arguments) {
  OpenedRun run{open_run_samples(arguments.run, read_run_samples(arguments.run)),
                read_run_options(arguments.run), place_of_run(arguments.run)};
  run.options.order = run.samples.order;
  run.options.threads = arguments.threads > 0 ? arguments.threads : usable_cores(1);
  run.options.feed.workers = run.options.threads;
  return run;
}

void rank_samples(const RewindArguments& arguments) {
  const OpenedRun run = open_run(arguments);
  const SubsetSource source(run.samples.source(), run.options.limit_train);
  const RankKind kind = parse_rank(arguments.rank);
  std::vector<SampleHistory> histories;
  if (kind != RankKind::duplicates) {
    histories = sample_histories(arguments.run, run.options, run.place, source.size());
  }
  const Ranking ranking = kind == RankKind::hardest ? rank_hardest(histories)
                          : kind == RankKind::never ? rank_never_learned(histories)
                                                    : rank_duplicates(source, run.options.threads);
  fmt::print("{}", ranking_text(ranking, histories, source, arguments.count));
  if (!arguments.list.empty()) write_file(arguments.list, list_of(ranking, source));
  if (!arguments.rest.empty()) write_file(arguments.rest, list_of_others(ranking, source));
}

// `shown` has the run, the step and the spikes.
void rewind_step(const RewindArguments& arguments, ShownStep shown) {
  const OpenedRun run = open_run(arguments);
  const FedStep step(run.samples.source(), run.options, run.place, shown.step);
  shown.epoch = step.batch().header().epoch;
  shown.kept = kept_step(shown.run, shown.step);
  shown.receipt = check_receipt(shown.run, step, shown.step - run.place.more_steps);
  for (const std::string& name : arguments.without) shown.without.push_back(printable_name(name));
  if (arguments.replay || !arguments.without.empty()) {
    shown.replay =
        replay_step(step, run.options, shown.run, run.place, shown.step, run.samples.source(),
                    rows_without(step, arguments.without), kGradientParts);
  }
  add_rows(step, run.options, kept_losses(shown.run, shown.step, step.rows()), shown);
  fmt::print("{}", step_text(shown, arguments.count));
  if (!arguments.json.empty()) write_file(arguments.json, step_json(shown).dump(1) + "\n");
  if (!arguments.page.empty()) {
    write_file(arguments.page, step_page(shown, step, arguments.count));
  }
}

}  // namespace

int run_rewind(int argc, char** argv) {
  RewindArguments arguments;
  auto app = make_parser(
      "rewind",
      "Draws the rows of a step as a training was fed them, from its config.json, its data and "
      "its\nreceipt, with the losses that it kept (train --row-losses). --replay trains up to the "
      "step once\nmore and says which rows carry its loss.",
      "  stoker rewind runs/r18 --step 1200\n"
      "  stoker rewind runs/r18 --spike\n"
      "  stoker rewind runs/r18 --step 1200 --replay -o step.html\n"
      "  stoker rewind runs/r18 --step 1200 --without train/cat/0412.jpg --json step.json\n"
      "  stoker rewind runs/r18 --rank never --list wrong.txt --rest right.txt\n");
  add_rewind_options(*app, arguments);
  if (const auto code = parse_options(*app, argc, argv)) return *code;
  check_rewind(*app, arguments);

  if (!arguments.rank.empty()) {
    rank_samples(arguments);
    return kExitOk;
  }
  ShownStep shown{.run = arguments.run, .step = arguments.step};
  if (arguments.spike) {
    shown.spikes = spikes_of_run(arguments.run);
    fmt::print("{}", spikes_text(shown.spikes, kSpikesShown));
    if (shown.step < 0 && shown.spikes.empty()) return kExitOk;
  }
  if (shown.step < 0) shown.step = shown.spikes.front().step;
  rewind_step(arguments, std::move(shown));
  return kExitOk;
}

}  // namespace stoker
