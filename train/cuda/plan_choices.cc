#include "train/cuda/plan_choices.h"

#include <limits>
#include <stdexcept>
#include <utility>

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

}  // namespace stoker
