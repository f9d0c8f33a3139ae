// The plan cache: the fastest plan of each convolution, as lines of text in one sealed file
// (pipeline/files/sealed_file.h) that all processes of a user share. The file is optional: plans
// that cannot be read are timed again. Owner: PlanChoices. One thread; other processes may read and
// write the same file. Independent of GPUs.
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

}  // namespace stoker
