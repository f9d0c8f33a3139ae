// Makes the rows of lists of stages from JPEG files in memory, on one thread: stoker's side of
// bench/peers/recipes/run.
//
//   recipe_rows_bench FILE...
//
// Each line of the input is a pixel policy (fast or exact), an epoch and one or more texts of
// stages, separated by tabs. For each line the program makes the rows of every file, all texts one
// after the other, and prints the CPU time that an image took, in microseconds. A text of views
// makes all its rows of one decoding; several texts decode each image once for each.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/report/program.h"
#include "pipeline/augment.h"
#include "tools/machine/load.h"

namespace stoker {
namespace {

// One list of stages, with memory for its rows.
class RecipeRows {
 public:
  RecipeRows(const std::string& policy, const std::string& stages)
      : spec_(stages), augmenter_(spec_, decode_options(policy)) {
    pixels_.resize(static_cast<size_t>(spec_.views()));
    for (int view = 0; view < spec_.views(); ++view) {
      const Size size = spec_.view(view).output;
      std::vector<uint8_t>& pixels = pixels_[static_cast<size_t>(view)];
      pixels.resize(size_t{3} * static_cast<size_t>(size.width) * static_cast<size_t>(size.height));
      outs_.push_back({pixels.data(), size.width, size.height, ptrdiff_t{3} * size.width});
    }
  }

  void run(std::span<const uint8_t> bytes, uint64_t seed, int64_t epoch, int64_t sample) {
    Size source;
    const DecodeStatus status =
        spec_.views() == 1 ? augmenter_.file_row(bytes, seed, epoch, sample, outs_[0], source)
                           : augmenter_.file_views(bytes, seed, epoch, sample, outs_, source);
    if (!status.ok()) throw std::runtime_error(status.message);
  }

 private:
  static DecodeOptions decode_options(const std::string& policy) {
    DecodeOptions options;
    options.pixels = policy == "fast" ? PixelPolicy::fast : PixelPolicy::exact;
    return options;
  }

  AugmentSpec spec_;
  Augmenter augmenter_;
  std::vector<std::vector<uint8_t>> pixels_;
  std::vector<MutableImageView> outs_;
};

std::vector<uint8_t> bytes_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(std::string("cannot read ").append(path));
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> fields_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> fields;
  for (std::string field; std::getline(stream, field, '\t');) fields.push_back(field);
  if (fields.size() < 3) throw std::invalid_argument("not a request");
  return fields;
}

int run(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: recipe_rows_bench FILE...\n");
    return 2;
  }
  std::vector<std::vector<uint8_t>> files;
  for (int i = 1; i < argc; ++i) files.push_back(bytes_of(argv[i]));
  std::map<std::string, std::unique_ptr<RecipeRows>> kept;
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<std::string> fields = fields_of(line);
    const int64_t epoch = std::atoll(fields[1].c_str());
    // Equal texts draw apart, because each has a seed of its own.
    std::vector<RecipeRows*> texts;
    for (size_t i = 2; i < fields.size(); ++i) {
      std::unique_ptr<RecipeRows>& rows = kept[fields[0] + fields[i]];
      if (!rows) rows = std::make_unique<RecipeRows>(fields[0], fields[i]);
      texts.push_back(rows.get());
    }
    const double begin = thread_cpu_seconds();
    for (size_t file = 0; file < files.size(); ++file) {
      for (size_t i = 0; i < texts.size(); ++i) {
        texts[i]->run(files[file], i, epoch, static_cast<int64_t>(file));
      }
    }
    const double seconds = thread_cpu_seconds() - begin;
    std::printf("%.3f\n", 1e6 * seconds / static_cast<double>(files.size()));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  return stoker::run_program("recipe_rows_bench", stoker::run, argc, argv);
}
