// A step as `stoker rewind` shows it: on the terminal, as JSON, and as a page with the pictures
// as they were fed. Values and pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "train/run/replay.h"
#include "train/run/rewind.h"

namespace stoker {

struct ShownRow {
  int row = 0;
  SampleId sample = 0;
  std::string name, label;
  float weight = 0;
  std::string draws;                // a line for each picture or view
  std::string note;                 // what else it has: a substitute, a partner, a change; or ""
  std::optional<KeptRow> result{};  // as it was kept, or replayed
  std::optional<RowShare> share{};  // replayed
};

struct ShownStep {
  std::string run;
  int64_t step = 0, epoch = 0;
  ReceiptCheck receipt{};
  std::optional<StepRow> kept{};
  std::vector<Spike> spikes{};  // that were asked for
  std::optional<Replay> replay{};
  std::vector<std::string> without{};  // the names, by the replay's outcomes behind the first
  std::vector<ShownRow> rows{};        // by loss, where there are losses
};

// Fills in the rows. `results`: as a run kept them, by row of the global batch, or none.
void add_rows(const FedStep& step, const TrainOptions& options, std::span<const RowLoss> results,
              ShownStep& shown);

std::string spikes_text(const std::vector<Spike>& spikes, size_t most);
std::string step_text(const ShownStep& shown, size_t most_rows);
nlohmann::ordered_json step_json(const ShownStep& shown);
// One self-contained page with the first rows.
std::string step_page(const ShownStep& shown, const FedStep& step, size_t most_rows);

}  // namespace stoker
