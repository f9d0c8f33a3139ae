// The plan cache: which plan of a convolution was the fastest, as lines of text in one sealed file
// that all processes of a user share. Nothing in it is needed: what cannot be read is timed anew.
// Owner: PlanChoices. One thread; other processes may read and write the same file. Knows no GPU.
#pragma once

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

// Lines, the oldest first. `problem` is empty, or says in a few words why there are none although
// there is a file: "damaged", "of another version", or what the system says.
struct PlanLines {
  std::vector<PlanLine> lines;
  std::string problem;
};
PlanLines read_plan_file(const std::string& path);

// Adds lines to what the file holds now: one with the same question replaces the older answer. The
// oldest go where there are more than kMostPlanLines. Readers find the old file or the whole new
// one. Of two that write at once one may lose its lines, never the file. Neither text may contain a
// line break or a tab. Throws std::runtime_error.
constexpr size_t kMostPlanLines = 4096;  // a net has some 60; about 1 MB
void add_plan_lines(const std::string& path, const std::vector<PlanLine>& lines);

// The plan itself as cuDNN writes it, with its compiled kernel, for plans that take
// long to make: a sealed file of its own beside the plan cache at `path`, for each line that has
// one. Nothing if there is none, or it is damaged, or another line's.
std::optional<std::string> read_compiled_plan(const std::string& path, const PlanLine& line);
// Throws std::runtime_error.
void write_compiled_plan(const std::string& path, const PlanLine& line, const std::string& plan);

}  // namespace stoker
