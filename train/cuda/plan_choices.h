// Decides which plan a convolution takes: the one that the plan cache names, or else the fastest of
// the candidates. What cuDNN offers and how long it takes comes from outside, so that this runs
// without a GPU. Owner: CudaConvs. One thread.
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
  // Makes the plan of this name; false if there is none (any more).
  std::function<bool(const std::string& name)> restore;
  // The names of the plans to choose from, the best guess first; at least one.
  std::function<std::vector<std::string>()> candidates;
  // Milliseconds of a run of candidate `index`; infinite if it fails or cannot be timed. May give
  // up as soon as it is slower than `best` for sure; then anything above `best`.
  std::function<float(size_t index, float best)> time;
};

class PlanChoices {
 public:
  // `path`: the plan cache, "" = none. `say` takes lines for the user.
  PlanChoices(const std::string& path, std::function<void(const std::string&)> say);

  // The index of the chosen candidate; nothing if it is the plan that restore() made. `question`
  // names everything that the choice depends on.
  std::optional<size_t> choose(const std::string& question, const PlanSearch& search);
  // Writes what is new into the cache. To be called when there will be no more questions for a
  // while. A cache that cannot be written is said once and never an error.
  void save();
  // The plan `name` as it was kept with the answer to `question`, and keeping it: for plans that
  // take long to make.
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

// The order in which to try candidates, given which engine each one belongs to, the best guess
// first: as it is, but of one engine never more than `in_a_row` before the others had as many. An
// engine's first configurations say most about it.
std::vector<size_t> spread_over_engines(const std::vector<int64_t>& engines, int in_a_row);

}  // namespace stoker
