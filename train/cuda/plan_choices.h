// Chooses a convolution's plan: the one in the plan cache, or else the fastest candidate. The
// caller lists and times the candidates, so this works without a GPU. Owner: CudaConvs. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "train/cuda/plan_file.h"

namespace stoker {

struct PlanSearch {
  // Makes the plan of this name; returns false if there is none (any more).
  std::function<bool(const std::string& name)> restore;
  // Returns the names of the candidates, best guess first; at least one.
  std::function<std::vector<std::string>()> candidates;
  // Returns the milliseconds of a run of candidate `index`; infinite if it fails or cannot be
  // timed. May stop early and return any value above `best` if the candidate is certainly slower.
  std::function<float(size_t index, float best)> time;
};

class PlanChoices {
 public:
  // `path`: the plan cache; "": none. `say` gets lines for the user.
  PlanChoices(const std::string& path, std::function<void(const std::string&)> say);

  // Returns the index of the chosen candidate; nothing if restore() made the plan. `question` names
  // everything that the choice depends on.
  std::optional<size_t> choose(const std::string& question, const PlanSearch& search);
  // Writes new choices into the cache. Call it when no choices will follow for a while. A cache
  // that cannot be written is reported once and is never an error.
  void save();
  // Return and store the compiled plan `name` that answers `question`, for plans that take long to
  // make.
  std::optional<std::string> compiled(const std::string& question, const std::string& name) const;
  void keep_compiled(const std::string& question, const std::string& name, const std::string& plan);
  std::string summary() const;  // "60 plans kept, 6 timed"

 private:
  void write(const std::function<void()>& work);
  void remember(const std::string& question, const std::string& answer);

  const std::string path_;
  const std::function<void(const std::string&)> say_;
  std::map<std::string, std::string> answers_;
  std::vector<PlanLine> unsaved_;
  bool unwritable_ = false;
  int kept_ = 0, timed_ = 0;
};

// Returns the order in which to try candidates, given the engine of each one, best guess first. It
// keeps the given order, but takes at most `in_a_row` candidates of one engine before the other
// engines get their turn, because an engine's first configurations are the most informative.
std::vector<size_t> spread_over_engines(const std::vector<int64_t>& engines, int in_a_row);

}  // namespace stoker
