#include "train/run/metrics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "pipeline/files/durable_file.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr const char* kColumns[] = {
    "kind",      "epoch",           "step",          "epochs_done",
    "loss",      "accuracy",        "learning_rate", "images_per_second",
    "jitter",    "feed_wait_share", "seconds",       "bad_samples",
    "eval_loss", "eval_top1",       "eval_top5",     "eval_samples",
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// Formats a number for JSON and CSV; JSON has no NaN.
std::string number_or_null(double value) {
  return std::isfinite(value) ? fmt::format("{:.9g}", value) : "null";
}

// Returns the fields of an evaluation.
std::vector<std::pair<const char*, std::string>> eval_fields(const EvalResult& eval) {
  return {{"eval_loss", number_or_null(eval.loss)},
          {"eval_top1", number_or_null(eval.top1)},
          {"eval_top5", number_or_null(eval.top5)},
          {"eval_samples", std::to_string(eval.samples)}};
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  if (!fs::exists(path)) return lines;
  const std::string text = read_whole_file(path);
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) break;  // torn
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

void keep_lines(const std::string& path, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  replace_file(path, text);
}

// Returns whether the row in this line is at or before `last_step`.
bool json_row_stays(const std::string& line, int64_t last_step) {
  const auto row = nlohmann::json::parse(line, nullptr, false);
  return row.is_object() && row.contains("step") && row["step"].is_number_integer() &&
         row["step"].get<int64_t>() <= last_step;
}

bool csv_row_stays(const std::string& line, int64_t steps_done) {
  size_t at = 0;
  for (int column = 0; column < 2; ++column) {  // to "step"
    at = line.find(',', at);
    if (at == std::string::npos) return false;
    ++at;
  }
  return std::strtoll(line.c_str() + at, nullptr, 10) <= steps_done;
}

template <class Stays>
void trim(const std::string& path, size_t header_lines, Stays stays) {
  std::vector<std::string> lines = lines_of(path);
  const size_t header = std::min(header_lines, lines.size());
  lines.erase(std::remove_if(lines.begin() + static_cast<ptrdiff_t>(header), lines.end(),
                             [&](const std::string& line) { return !stays(line); }),
              lines.end());
  keep_lines(path, lines);
}

[[noreturn]] void fail_to_write(const std::string& path) {
  throw std::runtime_error("cannot write " + path + ": " + std::strerror(errno));
}

void open_to_append(std::ofstream& file, const std::string& path) {
  file.open(path, std::ios::app);
  if (!file) fail_to_write(path);
}

void append(std::ofstream& file, const std::string& line, const std::string& path) {
  file << line << '\n' << std::flush;
  if (!file) fail_to_write(path);
}

}  // namespace

void RateMeter::add(int64_t step_ns) {
  const double speed = static_cast<double>(images_per_step_) * 1e9 /
                       static_cast<double>(std::max<int64_t>(step_ns, 1));
  if (window_ == 0 || speeds_.size() < window_) {
    speeds_.push_back(speed);
  } else {
    speeds_[next_] = speed;
    next_ = (next_ + 1) % window_;
  }
}

Rate RateMeter::rate() const {
  if (speeds_.empty()) return {};
  Rate rate;
  rate.images_per_second = median(speeds_);
  std::vector<double> deviations;
  for (const double speed : speeds_) {
    deviations.push_back(std::fabs(speed - rate.images_per_second));
  }
  rate.jitter = 1.4826 * median(deviations);
  return rate;
}

void trim_jsonl(const std::string& path, int64_t last_step) {
  if (!fs::exists(fs::symlink_status(path))) return;
  trim(path, 0, [&](const std::string& line) { return json_row_stays(line, last_step); });
}

MetricsLog::MetricsLog(const std::string& folder, int64_t steps_done) {
  if (folder.empty()) return;
  json_path_ = folder + "/metrics.jsonl";
  csv_path_ = folder + "/metrics.csv";
  trim_jsonl(json_path_, steps_done);
  trim(csv_path_, 1, [&](const std::string& line) { return csv_row_stays(line, steps_done); });
  const bool fresh = fs::file_size(csv_path_) == 0;
  open_to_append(json_, json_path_);
  open_to_append(csv_, csv_path_);
  if (fresh) append(csv_, fmt::format("{}", fmt::join(kColumns, ",")), csv_path_);
}

void MetricsLog::add(const StepReport& report) {
  write({{"kind", "step"},
         {"epoch", std::to_string(report.epoch)},
         {"step", std::to_string(report.step)},
         {"epochs_done",
          number_or_null(report.epoch + static_cast<double>(report.step_in_epoch) /
                                            static_cast<double>(report.steps_per_epoch))},
         {"loss", number_or_null(report.loss)},
         {"accuracy", number_or_null(report.accuracy)},
         {"learning_rate", number_or_null(report.learning_rate)},
         {"images_per_second", number_or_null(report.images_per_second)},
         {"jitter", number_or_null(report.jitter)},
         {"feed_wait_share", number_or_null(report.feed_wait_share)},
         {"bad_samples", std::to_string(report.bad_samples)},
         {"gradient_bytes_sent", std::to_string(report.traffic.gradients_sent)},
         {"gradient_bytes_received", std::to_string(report.traffic.gradients_received)},
         {"weight_bytes_sent", std::to_string(report.traffic.weights_sent)},
         {"weight_bytes_received", std::to_string(report.traffic.weights_received)}});
}

void MetricsLog::add(const EpochReport& report) {
  Row row = {{"kind", "epoch"},
             {"epoch", std::to_string(report.epoch)},
             {"step", std::to_string(report.step)},
             {"epochs_done", number_or_null(report.epochs_done)},
             {"loss", number_or_null(report.loss)},
             {"accuracy", number_or_null(report.accuracy)},
             {"images_per_second", number_or_null(report.images_per_second)},
             {"jitter", number_or_null(report.jitter)},
             {"feed_wait_share", number_or_null(report.feed_wait_share)},
             {"seconds", number_or_null(report.seconds)}};
  if (report.eval) {
    const Row eval = eval_fields(*report.eval);
    row.insert(row.end(), eval.begin(), eval.end());
  }
  if (const auto spread = top1_spread(report.replicas)) {
    row.insert(row.end(), {{"eval_top1_deviation", number_or_null(spread->deviation)},
                           {"eval_top1_lowest", number_or_null(spread->lowest)},
                           {"eval_top1_highest", number_or_null(spread->highest)}});
  }
  write(row);
  for (size_t i = 0; i < report.replicas.size(); ++i) {
    const ReplicaFigures& replica = report.replicas[i];
    Row own = {{"kind", "replica"},
               {"replica", std::to_string(i)},
               {"epoch", std::to_string(report.epoch)},
               {"step", std::to_string(report.step)},
               {"loss", number_or_null(replica.loss)},
               {"accuracy", number_or_null(replica.accuracy)}};
    if (replica.eval) {
      const Row eval = eval_fields(*replica.eval);
      own.insert(own.end(), eval.begin(), eval.end());
    }
    write_json(own);
  }
}

void MetricsLog::add_warning(int64_t step, const std::string& text) {
  if (!json_.is_open()) return;
  const nlohmann::ordered_json row = {{"kind", "warning"}, {"step", step}, {"warning", text}};
  // A library's text may be in any encoding.
  append(json_, row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), json_path_);
}

void MetricsLog::write_json(const Row& row) {
  if (!json_.is_open()) return;
  std::vector<std::string> fields;
  for (const auto& [name, value] : row) {
    const bool text = std::string_view(name) == "kind";
    fields.push_back(text ? fmt::format("\"{}\": \"{}\"", name, value)
                          : fmt::format("\"{}\": {}", name, value));
  }
  append(json_, fmt::format("{{{}}}", fmt::join(fields, ", ")), json_path_);
}

void MetricsLog::write(const Row& row) {
  if (!json_.is_open()) return;
  write_json(row);
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : row) values[name] = value == "null" ? "nan" : value;
  std::vector<std::string> cells;
  for (const char* column : kColumns) cells.push_back(values[column]);
  append(csv_, fmt::format("{}", fmt::join(cells, ",")), csv_path_);
}

EvalResult mean_of(std::span<const EvalResult> results) {
  EvalResult mean = results.front();
  const auto count = static_cast<double>(results.size());
  for (const EvalResult& each : results.subspan(1)) {
    mean.top1 += each.top1;
    mean.top5 += each.top5;
    mean.loss += each.loss;
    mean.seconds = std::max(mean.seconds, each.seconds);
    mean.images_per_second += each.images_per_second;
  }
  mean.top1 /= count;
  mean.top5 /= count;
  mean.loss /= count;
  return mean;
}

Spread spread_of(std::span<const double> values) {
  Spread spread;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) spread.mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (values.size() > 1) spread.deviation = std::sqrt(squares / (count - 1));
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  spread.lowest = *lowest;
  spread.highest = *highest;
  return spread;
}

std::optional<Spread> top1_spread(std::span<const ReplicaFigures> replicas) {
  if (replicas.empty() || !replicas.front().eval) return std::nullopt;
  std::vector<double> values;
  for (const ReplicaFigures& replica : replicas) values.push_back(replica.eval->top1);
  return spread_of(values);
}

}  // namespace stoker
