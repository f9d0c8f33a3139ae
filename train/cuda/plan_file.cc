#include "train/cuda/plan_file.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "pipeline/files/digest.h"
#include "pipeline/files/sealed_file.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

// A larger file is not ours.
constexpr SealedKind kPlanFileKind{"stokercp", 2, uint64_t{1} << 24};

// Moves the text up to `end` to `piece` and removes `end` too; returns false without an `end`.
bool take_until(std::string_view& text, char end, std::string_view& piece) {
  const size_t at = text.find(end);
  if (at == std::string_view::npos) return false;
  piece = text.substr(0, at);
  text.remove_prefix(at + 1);
  return true;
}

bool parse_lines(std::string_view text, std::vector<PlanLine>& lines) {
  while (!text.empty()) {
    std::string_view line, question;
    if (!take_until(text, '\n', line) || !take_until(line, '\t', question)) return false;
    lines.push_back({std::string(question), std::string(line)});
  }
  return true;
}

std::string line_text(const PlanLine& line) { return line.question + '\t' + line.answer + '\n'; }

std::string compiled_path(const std::string& path, const PlanLine& line) {
  return (fs::path(path).parent_path() /
          ("conv-plan-" + hex64(text_digest(line_text(line))) + ".bin"))
      .string();
}

// Replaces the file, or throws and keeps the old one.
void write_sealed(const std::string& path, size_t count, const std::string& text) {
  SealedWriter(path, kPlanFileKind).finish(count, text);
}

}  // namespace

PlanLines read_plan_file(const std::string& path) {
  PlanLines read;
  const auto file = SealedFile::open(path, kPlanFileKind, read.problem);
  if (file && !parse_lines(file->table(), read.lines)) return {{}, "it is damaged"};
  return read;
}

void add_plan_lines(const std::string& path, const std::vector<PlanLine>& lines) {
  std::vector<PlanLine> all = read_plan_file(path).lines;
  for (const PlanLine& line : lines) {
    std::erase_if(all, [&](const PlanLine& old) { return old.question == line.question; });
    all.push_back(line);
  }
  if (all.size() > kMaxPlanLines) {
    all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(kMaxPlanLines));
  }
  std::string text;
  for (const PlanLine& line : all) text += line_text(line);
  write_sealed(path, all.size(), text);
}

std::optional<std::string> read_compiled_plan(const std::string& path, const PlanLine& line) {
  std::string problem;
  const auto file = SealedFile::open(compiled_path(path, line), kPlanFileKind, problem);
  const std::string question = line_text(line);
  if (!file || !file->table().starts_with(question)) return std::nullopt;
  return std::string(file->table().substr(question.size()));
}

void write_compiled_plan(const std::string& path, const PlanLine& line, const std::string& plan) {
  write_sealed(compiled_path(path, line), 1, line_text(line) + plan);
}

}  // namespace stoker
