#include "train/cuda/plan_choices.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "pipeline/files/digest.h"
#include "pipeline/files/sealed_file.h"

namespace stoker {
namespace {

// New choices are written in groups of this size, so that a process that ends early has saved most
// of them, and other engines of this process find them.
constexpr size_t kSaveEvery = 16;

}  // namespace

PlanChoices::PlanChoices(const std::string& path, std::function<void(const std::string&)> say)
    : path_(path), say_(std::move(say)) {
  if (path_.empty()) return;
  const PlanLines read = read_plan_file(path_);
  for (const PlanLine& line : read.lines) answers_[line.question] = line.answer;
  if (!read.problem.empty()) {
    say_("the plan cache " + path_ + " is not used: " + read.problem +
         "; convolutions are timed anew");
  }
}

std::optional<size_t> PlanChoices::choose(const std::string& question, const PlanSearch& search) {
  if (const auto answer = answers_.find(question); answer != answers_.end()) {
    if (search.restore(answer->second)) {
      ++kept_;
      return std::nullopt;
    }
    say_("the plan cache " + path_ + " names plan " + answer->second +
         ", which cuDNN does not offer; timed anew: " + question);
  }
  const std::vector<std::string> names = search.candidates();
  size_t best = 0;
  float best_ms = std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < names.size(); ++i) {
    const float ms = search.time(i, best_ms);
    if (ms < best_ms) {
      best = i;
      best_ms = ms;
    }
  }
  // A plan that could not be timed is a guess and not stored: the next process tries again.
  if (best_ms < std::numeric_limits<float>::infinity()) remember(question, names.at(best));
  return best;
}

void PlanChoices::remember(const std::string& question, const std::string& answer) {
  ++timed_;
  answers_[question] = answer;
  if (path_.empty()) return;
  unsaved_.push_back({question, answer});
  if (unsaved_.size() >= kSaveEvery) save();
}

void PlanChoices::save() {
  if (unsaved_.empty()) return;
  write([&] { add_plan_lines(path_, unsaved_); });
  unsaved_.clear();
}

std::optional<std::string> PlanChoices::compiled(const std::string& question,
                                                 const std::string& name) const {
  return path_.empty() ? std::nullopt : read_compiled_plan(path_, {question, name});
}

void PlanChoices::keep_compiled(const std::string& question, const std::string& name,
                                const std::string& plan) {
  if (!path_.empty()) write([&] { write_compiled_plan(path_, {question, name}, plan); });
}

void PlanChoices::write(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    if (!unwritable_) say_(std::string("the plan cache is not kept: ") + error.what());
    unwritable_ = true;
  }
}

std::string PlanChoices::summary() const {
  return std::to_string(kept_) + " plans kept, " + std::to_string(timed_) + " timed";
}

std::vector<size_t> spread_over_engines(const std::vector<int64_t>& engines, int in_a_row) {
  std::vector<size_t> order;
  std::vector<bool> taken(engines.size(), false);
  while (order.size() < engines.size()) {
    std::map<int64_t, int> in_this_round;
    for (size_t i = 0; i < engines.size(); ++i) {
      if (taken[i] || in_this_round[engines[i]] == in_a_row) continue;
      ++in_this_round[engines[i]];
      taken[i] = true;
      order.push_back(i);
    }
  }
  return order;
}

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
