#include "train/cuda/plan_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string_view>

#include "pipeline/files/durable_file.h"
#include "train/checkpoint/checksum.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

// The first line: this title, the version, and the checksum of everything that follows.
constexpr std::string_view kTitle = "stoker conv plans ";
constexpr std::string_view kVersion = "1 ";
constexpr uintmax_t kMaxPlanBytes = uintmax_t{1} << 24;  // a larger file is not ours

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

// Removes the first line of a valid file; returns what is wrong with an invalid one.
std::string unseal(std::string_view& text) {
  if (!text.starts_with(kTitle)) return "damaged";
  text.remove_prefix(kTitle.size());
  if (!text.starts_with(kVersion)) return "damaged or of another version";
  text.remove_prefix(kVersion.size());
  std::string_view seal;
  return take_until(text, '\n', seal) && seal == to_hex(fnv1a(text)) ? "" : "damaged";
}

PlanLines parse(std::string_view text) {
  PlanLines read;
  read.problem = unseal(text);
  if (!read.problem.empty()) return read;
  if (!parse_lines(text, read.lines)) return {{}, "damaged"};
  return read;
}

std::string line_text(const PlanLine& line) { return line.question + '\t' + line.answer + '\n'; }

std::string sealed(const std::string& text) {
  return std::string(kTitle) + std::string(kVersion) + to_hex(fnv1a(text)) + '\n' + text;
}

std::string compiled_path(const std::string& path, const PlanLine& line) {
  return (fs::path(path).parent_path() / ("conv-plan-" + to_hex(fnv1a(line_text(line))) + ".bin"))
      .string();
}

// Replaces the file, or throws and keeps the old one.
void write_whole(const std::string& path, const std::string& content) {
  ReplacedFile file(path);
  file.write_at(0, content);
  file.finish();
}

}  // namespace

PlanLines read_plan_file(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return {};
  try {
    if (fs::is_regular_file(status) && fs::file_size(path) > kMaxPlanBytes) return {{}, "damaged"};
    return parse(read_whole_file(path));
  } catch (const std::exception& problem) {
    return {{}, problem.what()};
  }
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
  write_whole(path, sealed(text));
}

std::optional<std::string> read_compiled_plan(const std::string& path, const PlanLine& line) {
  try {
    const std::string content = read_whole_file(compiled_path(path, line));
    std::string_view text = content;
    if (!unseal(text).empty() || !text.starts_with(line_text(line))) return std::nullopt;
    return std::string(text.substr(line_text(line).size()));
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

void write_compiled_plan(const std::string& path, const PlanLine& line, const std::string& plan) {
  write_whole(compiled_path(path, line), sealed(line_text(line) + plan));
}

}  // namespace stoker
