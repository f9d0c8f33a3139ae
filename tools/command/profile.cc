// stoker profile: runs a feed or a training for a while and says what limits it.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "pipeline/store/object_store.h"
#include "tools/command/command.h"
#include "tools/command/profile_run.h"
#include "tools/data/output_file.h"
#include "tools/machine/build_info.h"
#include "tools/profile/report.h"

namespace stoker {
namespace {

struct ProfileArguments {
  double seconds = 10;
  std::string out = "runs/profile";
  bool no_trace = false;
  bool json = false;
  ProfileFeedArguments feed;
};

void add_profile_options(CLI::App& app, ProfileArguments& arguments) {
  app.add_option("--seconds", arguments.seconds,
                 "Seconds to measure after the warm-up; longer where steps are slow")
      ->check(CLI::Range(0.5, 3600.0));
  app.add_option("--out", arguments.out, "Folder for profile.json, profile.html and trace.json");
  app.add_flag("--no-trace", arguments.no_trace, "Write no trace.json");
  app.add_flag("--json", arguments.json, "Print what profile.json has, and no sentences");
  add_profile_feed_options(app, arguments.feed);
}

// Refuses options of the emulated feed: a training has its own feed, and they would be ignored.
void refuse_feed_options(const CLI::App& app) {
  static const std::set<std::string> kOfEveryRun = {"--seconds", "--out", "--no-trace", "--json",
                                                    "--config"};
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || kOfEveryRun.contains(option->get_name())) continue;
    throw std::invalid_argument(
        option->get_name() +
        " is for an emulated device; a training's own options follow `-- train`");
  }
}

void write_results(const ProfileArguments& arguments, const ProfileOutcome& outcome) {
  const std::string json = arguments.out + "/profile.json";
  const nlohmann::ordered_json profile = profile_json(outcome.profile);
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;  // names not in UTF-8
  const std::string whole = profile.dump(1, ' ', false, kReplace) + "\n";
  write_file(json, whole);
  // Where the files are is for people; with --json nothing but JSON is printed.
  const auto say = [&](const std::string& line) {
    if (!arguments.json) fmt::print("{}", line);
  };
  if (arguments.json) fmt::print("{}", whole);
  say(fmt::format("\n{:<12} {}\n", "profile", json));
  const std::string page = arguments.out + "/profile.html";
  write_file(page, profile_page(profile));
  say(fmt::format("{:<12} {}\n", "page", page));
  if (arguments.no_trace) return;
  const std::string trace = arguments.out + "/trace.json";
  OutputFile file(trace);
  const int64_t events =
      write_trace([&](std::string_view text) { file.append(text); }, outcome.run, outcome.name_of);
  file.close();
  say(fmt::format("{:<12} {} ({} events; open it at ui.perfetto.dev or chrome://tracing)\n",
                  "trace", trace, events));
}

std::string command_text(int argc, char** argv) {
  std::string text = "stoker";
  for (int i = 0; i < argc; ++i) text += " " + shown_word(argv[i]);
  return text;
}

}  // namespace

int run_profile(int argc, char** argv) {
  ProfileArguments arguments;
  auto app = make_parser(
      "profile",
      "Says why a device waits. Runs a feed against an emulated device, or a training, for some\n"
      "seconds, and names the stage that limits, how sure that is, and what to change. During the\n"
      "run it changes the number of workers for a while, and then gives the device the same batch\n"
      "again and again. A training that is profiled saves nothing but one checkpoint, in --out of\n"
      "the profile, which is timed and removed; what of its own options is left out is said.",
      "  stoker profile --data data/imagenette --size 224 --batch 256 --demand 1786\n"
      "  stoker profile --data data/imagenette --demand 1786 --workers 4 --cold\n"
      "  stoker profile --data data/imagenette --demand 1786 --json\n"
      "  stoker profile --seconds 20 -- train --data data/imagenette --model resnet18 --size "
      "128\n");
  add_profile_options(*app, arguments);
  const auto end = std::find_if(argv, argv + argc,
                                [](const char* word) { return std::strcmp(word, "--") == 0; });
  const int own = static_cast<int>(end - argv);
  if (const auto code = parse_options(*app, own, argv)) return *code;
  const bool trains = own < argc;
  if (trains == !arguments.feed.data.data.empty()) {
    throw std::invalid_argument(trains ? "--data must follow `-- train`"
                                       : "either --data and --demand, or -- train ... are needed");
  }
  if (trains) {
    refuse_feed_options(*app);
  } else {
    check_feed_options(*app, arguments.feed.data, {arguments.feed.data.data});
    check_seek_index(arguments.feed.data);
  }
  ProfileOutcome outcome =
      trains ? profile_train(argc - own - 1, argv + own + 1, arguments.seconds, arguments.out)
             : profile_feed(arguments.feed, arguments.seconds, arguments.out);
  outcome.profile.command = command_text(argc, argv);
  outcome.profile.version = kBuildVersion;
  if (!arguments.json) {
    for (const std::string& line : verdict_lines(outcome.profile)) fmt::print("{}\n", line);
  }
  write_results(arguments, outcome);
  return kExitOk;
}

}  // namespace stoker
