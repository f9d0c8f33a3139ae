// Chooses a convolution's plan: the one in the plan cache, or else the fastest candidate. The
// caller lists and times the candidates, so this works without a GPU. The cache has the fastest
// plan of each convolution, as lines of text in one sealed file (pipeline/files/sealed_file.h) that
// all processes of a user share. It is optional: plans that cannot be read are timed again. Owner:
// CudaConvs. One thread; other processes may read and write the same file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stoker {

struct PlanLine {
  std::string question;  // everything that the answer depends on
  std::string answer;    // a plan's name
  bool operator==(const PlanLine&) const = default;
};

// Lines, oldest first. `problem` is empty, or says why there are no lines although there is a file.
struct PlanLines {
  std::vector<PlanLine> lines;
  std::string problem;
};
PlanLines read_plan_file(const std::string& path);

// Adds lines to the file: a line with the same question replaces the older one. Drops the oldest
// lines if there are more than kMaxPlanLines. Readers see the old file or the complete new one. If
// two processes write at the same time, the lines of one may be lost, but never the file. Neither
// text may contain a line break or a tab. Throws std::runtime_error.
constexpr size_t kMaxPlanLines = 4096;  // a net has some 60; about 1 MB
void add_plan_lines(const std::string& path, const std::vector<PlanLine>& lines);

// Returns the plan itself in cuDNN's text form, with its compiled kernel, for plans that take long
// to make. Each is stored in a separate sealed file, next to the plan cache at `path`.
// Returns nothing if there is no file, or it is damaged or belongs to another line.
std::optional<std::string> read_compiled_plan(const std::string& path, const PlanLine& line);
// Throws std::runtime_error.
void write_compiled_plan(const std::string& path, const PlanLine& line, const std::string& plan);

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
