#include "tools/command/command.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <vector>

#include "staging/error_text.h"
#include "tools/command/bench.h"

namespace stoker {
namespace {

constexpr std::array kCommands = {
    Command{"train", "trains a model on a folder of images or CIFAR's binary files", run_train},
    Command{"eval", "prints top-1 and top-5 of a checkpoint; every sample counts once", run_eval},
    Command{"export", "writes a checkpoint's model as an ONNX file", run_export},
    Command{"peek", "draws a contact sheet of what the model sees", run_peek},
    Command{"dump", "writes batches as .npy files, with where every sample came from", run_dump},
    Command{"augment", "lists the stages of augmentations, and explains one", run_augment},
    Command{"profile", "says which stage starves the device, and what to change", run_profile},
    Command{"top", "watches a training that runs in another terminal", run_top},
    Command{"check", "decodes everything and lists the bad files", run_check},
    Command{"index", "makes seek indexes, with which JPEG files are decoded faster", run_index},
    Command{"pack", "writes a data set as shards of tar or Parquet, which other software reads",
            run_pack},
    Command{"bench",
            "measures the feed, emulated accelerators, scaling, links; compares two results",
            run_bench},
    Command{"plan", "calculates the cores, memory and bandwidth that a number of GPUs needs",
            run_plan},
    Command{"info", "says what this build and this machine have", run_info},
    Command{"make-shapes", "draws a data set of ten classes of shapes", run_make_shapes},
    Command{"receipt", "compares what two runs were fed", run_receipt},
    Command{"rewind", "draws a step of a run again, and says which rows carry its loss",
            run_rewind},
};

// Returns how many letters must be put in, left out, changed or swapped with the next one.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> edits(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        edits[i][j] = i + j;
        continue;
      }
      const size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      edits[i][j] =
          std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, edits[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
      }
    }
  }
  return edits[a.size()][b.size()];
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

bool is_command(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "bench") return is_bench(words[1]);
  return words.size() == 1 &&
         std::any_of(kCommands.begin(), kCommands.end(),
                     [&](const Command& command) { return command.name == words[0]; });
}

std::string closest_names(const std::string& wrong, std::span<const Command> commands) {
  std::map<size_t, std::string> by_edits;  // the fewest edits first
  for (const Command& command : commands) {
    const std::string name = command.name;
    const size_t edits = name.starts_with(wrong) && !wrong.empty() ? 0 : edit_distance(wrong, name);
    if (edits > std::max<size_t>(1, name.size() / 3)) continue;
    std::string& names = by_edits[edits];
    names += (names.empty() ? "" : " or ") + name;
  }
  return by_edits.empty() ? "" : "; did you mean " + by_edits.begin()->second + "?";
}

int run_command(const Command& command, const std::string& name, int argc, char** argv) {
  try {
    return command.run(argc, argv);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "stoker %s: %s (see stoker %s --help)\n", name.c_str(),
                 in_options(error).c_str(), name.c_str());
    return kExitUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stoker %s: %s\n", name.c_str(), in_options(error_text(error)).c_str());
    return kExitFailed;
  }
}

}  // namespace stoker
