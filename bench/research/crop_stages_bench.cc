// Measures where CropDecoder's time goes without a seek index: runs the decoder's own parts stage
// by stage on random-resized crops to 224 of real files.
//
//   crop_stages_bench FOLDER [rounds] [limit] [train|eval] [POLICY]
//
// The pixel policies take turns, round by round; with POLICY only that one is measured.
//
// A stage's share is that of the wall time, because a busy machine stretches all stages evenly. Its
// time is this share of the CPU time that CropDecoder takes for the same crops in the same run.
// Both are medians over the rounds.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/report/program.h"
#include "bench/report/statistics.h"
#include "bench/research/crop_work.h"
#include "decode/crop_decoder.h"
#include "decode/jpeg/exact_pixels.h"
#include "decode/jpeg/fast_pixels.h"
#include "decode/jpeg/scan_reader.h"
#include "tools/machine/cpu_time.h"

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;

enum Stage { headers, weights, tables, stuffing, outside, crop, inverse, resize, kStages };
constexpr const char* kNames[kStages] = {"headers",
                                         "weights and places",
                                         "Huffman tables",
                                         "stuffing bytes out",
                                         "entropy outside the crop",
                                         "entropy of the crop",
                                         "inverse DCT, clearing",
                                         "resize and colour"};

class Stages {
 public:
  explicit Stages(std::unique_ptr<CropPixels> pixels) : pixels_(std::move(pixels)) {}

  // Does what CropDecoder::decode does. Returns false if CropDecoder does not support the file.
  bool decode(const CropWork& work, MutableImageView out) {
    last_ = Clock::now();
    if (!parse_baseline(work.sample->bytes, jpeg_)) return false;
    ended(headers);
    if (!pixels_->plan(jpeg_, work.spec)) return false;
    ended(weights);
    if (!reader_.open(work.sample->bytes, jpeg_, tables_)) return false;
    ended(tables);
    if (!reader_.begin()) return false;
    pixels_->begin(out);
    ended(stuffing);
    for (int row = 0; row < pixels_->checked_rows(); ++row) {
      if (!read_row(row - pixels_->mcus().y)) return false;
    }
    return true;
  }

  std::array<double, kStages> take_seconds() { return std::exchange(seconds_, {}); }

 private:
  bool read_row(int row) {
    const Box& mcus = pixels_->mcus();
    if (row < 0 || row >= mcus.height) {
      const bool is_good = reader_.skip(jpeg_.mcus_across);
      ended(outside);
      return is_good;
    }
    pixels_->begin_row(reader_, RowSlot::first);
    ended(inverse);
    if (!reader_.skip(mcus.x)) return false;
    ended(outside);
    if (!reader_.store(0, mcus.width)) return false;
    ended(crop);
    if (!reader_.skip(jpeg_.mcus_across - mcus.x - mcus.width)) return false;
    ended(outside);
    if (!pixels_->finish_row(row, RowSlot::first)) return false;
    ended(inverse);
    pixels_->resize(row);
    ended(resize);
    return true;
  }

  void ended(Stage stage) {
    const Clock::time_point now = Clock::now();
    seconds_[stage] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

  BaselineJpeg jpeg_;
  HuffmanCache tables_;
  ScanReader reader_;
  std::unique_ptr<CropPixels> pixels_;
  Clock::time_point last_;
  std::array<double, kStages> seconds_ = {};
};

struct Subject {
  explicit Subject(PixelPolicy p)
      : policy(p),
        whole(1 << 28, p),
        stages(p == PixelPolicy::fast ? std::unique_ptr<CropPixels>(std::make_unique<FastPixels>())
                                      : std::make_unique<ExactPixels>(p)) {}
  void measure(const std::vector<CropWork>& crops);

  const PixelPolicy policy;
  CropDecoder whole;
  Stages stages;
  std::vector<uint8_t> pixels;
  std::vector<double> micros, shares[kStages];  // per round
};

void Subject::measure(const std::vector<CropWork>& crops) {
  double seconds = 0, sum = 0;
  int64_t count = 0;
  for (const CropWork& work : crops) {
    const MutableImageView out = output_of(work.spec, pixels);
    if (!stages.decode(work, out)) continue;
    const double from = process_cpu_seconds();
    whole.decode(work.sample->bytes, work.spec, out);
    seconds += process_cpu_seconds() - from;
    ++count;
  }
  const std::array<double, kStages> spent = stages.take_seconds();
  for (const double s : spent) sum += s;
  for (int s = 0; s < kStages; ++s) shares[s].push_back(spent[static_cast<size_t>(s)] / sum);
  micros.push_back(1e6 * seconds / static_cast<double>(count));
}

void print(const Subject& subject) {
  const double all = median(subject.micros);
  std::printf("%s\n", to_string(subject.policy));
  for (int s = 0; s < kStages; ++s) {
    const double share = median(subject.shares[s]);
    std::printf("%-26s %8.1f us %6.1f %%\n", kNames[s], share * all, 100 * share);
  }
  std::printf("%-26s %8.1f us\n", "all of it", all);
}

int run(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: crop_stages_bench FOLDER [rounds] [limit] [train|eval] "
                 "[fast|exact|exact-pillow12]\n");
    return 2;
  }
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  const std::vector<JpegSample> samples =
      load_jpegs(argv[1], argc > 3 ? static_cast<size_t>(std::atoi(argv[3])) : 300);
  const std::string mode = argc > 4 ? argv[4] : "train";
  const std::string policy = argc > 5 ? argv[5] : "";
  std::vector<std::unique_ptr<Subject>> subjects;
  for (const PixelPolicy each :
       {PixelPolicy::fast, PixelPolicy::exact, PixelPolicy::exact_pillow12}) {
    if (policy.empty() || policy == to_string(each)) {
      subjects.push_back(std::make_unique<Subject>(each));
    }
  }
  if (subjects.empty()) throw std::invalid_argument("there is no pixel policy '" + policy + "'");
  for (int round = 0; round < rounds; ++round) {
    const std::vector<CropWork> crops = plan_crops(samples, mode, round);
    for (const auto& subject : subjects) subject->measure(crops);
  }
  for (const auto& subject : subjects) print(*subject);
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  return stoker::run_program("crop_stages_bench", stoker::run, argc, argv);
}
