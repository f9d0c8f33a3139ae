#include "tools/command/bench_options.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "bench/suite/feed_parts.h"
#include "pipeline/files/printable_name.h"
#include "pipeline/random/random_key.h"
#include "pipeline/store/object_store.h"
#include "tools/command/command.h"
#include "tools/data/jpeg_writer.h"
#include "tools/data/output_file.h"
#include "tools/machine/machine.h"

namespace stoker {
namespace {

constexpr int kMaxCount = 1 << 20;

int count_of(const std::string& text, const std::string& all, const std::string& option) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0 || value > kMaxCount) {
    throw std::invalid_argument(
        fmt::format("{}: '{}' is not a list like 1,2,4 or 1..8", option, all));
  }
  return value;
}

}  // namespace

BenchOutput::BenchOutput(CLI::App& app) {
  app.add_option(
      "--out", out_,
      "Folder for JSON and Markdown; bench/report/plot FILE.json draws its plots (default: none)");
  app.add_flag("--json", json_, "Print JSON instead of tables");
}

void BenchOutput::begin(const std::string& command, int argc, char** argv) {
  command_ = command;
  for (int i = 1; i < argc; ++i) command_ += " " + shown_word(argv[i]);
  machine_ = describe_machine();
  load_at_begin_ = read_machine_load({});
}

int BenchOutput::finish(Report report) {
  machine_["neighbours"] = describe_neighbours(read_machine_load({}) - load_at_begin_,
                                               machine_.value("cores_usable", 0));
  report.command = command_;
  report.machine = machine_;
  const std::string json = to_json(report).dump(1) + "\n";
  fmt::print("{}", json_ ? json : to_markdown(report, machine_line(report.machine)));
  if (out_.empty()) return kExitOk;
  const std::filesystem::path folder = out_;
  std::filesystem::create_directories(folder);
  write_file(folder / (report.bench + ".json"), json);
  write_file(folder / (report.bench + ".md"), to_markdown(report, machine_line(report.machine)));
  return kExitOk;
}

std::vector<int> parse_counts(const std::string& text, const std::string& option) {
  const size_t dots = text.find("..");
  std::vector<int> counts;
  if (dots != std::string::npos) {
    const int first = count_of(text.substr(0, dots), text, option);
    const int last = count_of(text.substr(dots + 2), text, option);
    for (int count = first; count <= last; ++count) counts.push_back(count);
  } else {
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
      counts.push_back(count_of(part, text, option));
    }
  }
  std::vector<int> sorted = counts;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw std::invalid_argument(fmt::format("{}: '{}' names a number twice", option, text));
  }
  if (counts.empty()) throw std::invalid_argument(fmt::format("{}: '{}' is empty", option, text));
  return counts;
}

std::string doubling_counts(int most) {
  std::string text;
  for (int count = 1; count < most; count *= 2) text += fmt::format("{},", count);
  return text + std::to_string(most);
}

void add_repeats_option(CLI::App& app, int& repeats, const std::string& of_what) {
  app.add_option("--repeats", repeats,
                 "Repeats of " + of_what + "; 6 and more give a 95 % interval")
      ->check(CLI::Range(1, 100'000));
}

namespace {

namespace fs = std::filesystem;

constexpr int kImages = 64;
constexpr int kWidth = 500, kHeight = 375, kQuality = 90;

// Stripes with some noise.
std::vector<uint8_t> draw_picture(uint64_t seed) {
  const RandomKey key(seed, 0, 0);
  std::vector<uint8_t> pixels(size_t{3} * kWidth * kHeight);
  for (size_t i = 0; i < pixels.size(); ++i) {
    const size_t x = i / 3 % kWidth, y = i / 3 / kWidth;
    pixels[i] = static_cast<uint8_t>((x * (seed % 5 + 1) / 4 + y / 2 + i % 3 * 40) % 200 +
                                     key.bits(static_cast<uint32_t>(i)) % 24);
  }
  return encode_jpeg({pixels.data(), kWidth, kHeight, ptrdiff_t{3} * kWidth}, kQuality);
}

std::string draw_pictures() {
  std::string folder = fs::temp_directory_path() / "stoker-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("cannot make " + folder);
  for (const char* name : {"a", "b"}) fs::create_directory(fs::path(folder) / name);
  for (int i = 0; i < kImages; ++i) {
    const std::vector<uint8_t> bytes = draw_picture(static_cast<uint64_t>(i));
    write_file(fs::path(folder) / (i % 2 ? "a" : "b") / (std::to_string(i) + ".jpg"),
               std::as_bytes(std::span(bytes)));
  }
  return folder;
}

}  // namespace

void add_bench_data_options(CLI::App& app, BenchDataOptions& options) {
  app.add_option("--data", options.data.data,
                 "The data, as for stoker check: a folder, shards or a list (default: 64 drawn "
                 "JPEGs of 500 x 375)");
  add_field_options(app, options.data);
  add_objects_options(app, options.data);
  options.data.split = "all";
  options.data.pixels = "fast";  // as in training
  add_split_option(app, options.data);
  app.add_flag("--in-memory", options.in_memory,
               "Read all files into memory first, to measure without storage");
  add_augment_choice(app, options.augment);
  add_decode_options(app, options.data);
  app.add_option("--io-threads", options.data.io_threads,
                 "Threads that read the files that are not in memory")
      ->check(CLI::Range(0, 1024));
}

BenchData::BenchData(const BenchDataOptions& options)
    : drawn_(options.data.data.empty() ? draw_pictures() : "") {
  try {
    DataOptions data = options.data;
    if (!drawn_.empty()) data.data = drawn_;
    files_ = open_data(data, drawn_.empty() ? parse_split(data.split) : Split::all);
    if (options.in_memory) memory_ = std::make_unique<MemorySource>(*files_);
  } catch (...) {
    if (!drawn_.empty()) fs::remove_all(drawn_);
    throw;
  }
}

BenchData::~BenchData() {
  std::error_code ignored;
  if (!drawn_.empty()) fs::remove_all(drawn_, ignored);
}

std::string BenchData::describe() const {
  const std::string what = drawn_.empty() ? printable_name(files_->root())
                                          : std::to_string(kImages) + " drawn JPEGs of 500 x 375";
  const AnnotationInfo& annotations = files_->annotations();
  return what + (memory_ ? ", from memory" : ", from files") +
         (annotations.any() ? "; " + stoker::describe(annotations) : "");
}

LinkMachine machine_option(const std::string& preset_or_file) {
  try {
    return find_machine(preset_or_file);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string("--machine: ") + error.what());
  }
}

std::string preset_names() {
  std::string names;
  for (const LinkMachine& machine : machine_presets()) {
    names += (names.empty() ? "" : ", ") + machine.name;
  }
  return names;
}

}  // namespace stoker
