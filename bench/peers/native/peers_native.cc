// The participants written in C++: peers_native METHOD PLAN.json THREADS, or peers_native --list.
//
// The files are in memory. Each of THREADS threads takes the next image, decodes it with its own
// Method and writes the sample into a ring of slabs of 50 rows, as a loader does. participant.h
// describes the protocol.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "bench/peers/native/method.h"
#include "bench/peers/native/participant.h"
#include "bench/peers/native/plan.h"
#include "bench/report/program.h"
#include "decode/pixel_ops.h"
#include "staging/error_text.h"

namespace stoker::peers {
namespace {

constexpr int kSlabs = 4;
constexpr int kSlabRows = 50;

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": could not be opened");
  return {std::istreambuf_iterator<char>(file), {}};
}

class Native final : public Participant {
 public:
  Native(const MethodInfo& info, Plan plan, int threads)
      : plan_(std::move(plan)),
        version_(info.version),
        row_bytes_(size_t{3} * plan_.output.width * plan_.output.height),
        slabs_(kSlabs * kSlabRows * row_bytes_) {
    for (const std::string& path : plan_.files) files_.push_back(read_file(path));
    for (int i = 0; i < threads; ++i) {
      Worker& worker = workers_.emplace_back(Worker{info.make(), std::vector<uint8_t>(row_bytes_)});
      for (size_t f = 0; f < files_.size(); ++f) {
        worker.method->prepare(static_cast<int>(f), files_[f]);
      }
    }
  }

  std::string version() const override { return version_; }

  int64_t run(int first_round, int rounds) override {
    const size_t images = files_.size();
    next_ = static_cast<size_t>(first_round) * images;
    const size_t end = next_ + static_cast<size_t>(rounds) * images;
    if (end > plan_.rounds.size() * images) throw std::out_of_range("more rounds than planned");
    if (workers_.size() == 1) {
      work(workers_[0], end);
    } else {
      std::vector<std::thread> threads;
      for (Worker& worker : workers_) threads.emplace_back([&] { work(worker, end); });
      for (std::thread& thread : threads) thread.join();
    }
    error_.rethrow();
    return static_cast<int64_t>(end) - int64_t{first_round} * static_cast<int64_t>(images);
  }

  int64_t write_rows(const std::string& path) override {
    std::ofstream file(path, std::ios::binary);
    std::vector<uint8_t> row(row_bytes_);
    for (size_t i = 0; i < files_.size(); ++i) {
      fill(workers_[0], i, row.data());
      file.write(reinterpret_cast<const char*>(row.data()), std::ssize(row));
    }
    if (!file.flush()) throw std::runtime_error(path + ": could not be written");
    return std::ssize(files_);
  }

 private:
  struct Worker {
    std::unique_ptr<Method> method;
    std::vector<uint8_t> unshifted;  // cifar: the image before its shift
  };

  void work(Worker& worker, size_t end) {
    try {
      for (size_t item = next_++; item < end; item = next_++) {
        fill(worker, item, slabs_.data() + item % (kSlabs * kSlabRows) * row_bytes_);
      }
    } catch (...) {
      error_.keep_current();
    }
  }

  void fill(Worker& worker, size_t item, uint8_t* row) {
    const size_t file = item % files_.size();
    const Draw& draw = plan_.rounds[item / files_.size()][file];
    const Size size = plan_.output;
    const auto view = [size](uint8_t* data) {
      return MutableImageView{data, size.width, size.height, ptrdiff_t{3} * size.width};
    };
    CropSpec spec = draw.spec;
    if (plan_.mode == Mode::cifar) {
      const MutableImageView image = view(worker.unshifted.data());
      worker.method->decode(static_cast<int>(file), files_[file], spec, image);
      shift_flip(image, draw.shift_x, draw.shift_y, draw.flip, PadMode::zero, view(row));
    } else {
      spec.flip = draw.flip;
      worker.method->decode(static_cast<int>(file), files_[file], spec, view(row));
    }
  }

  const Plan plan_;
  const std::string version_;
  const size_t row_bytes_;
  std::vector<std::vector<uint8_t>> files_;
  std::vector<uint8_t> slabs_;  // (kSlabs * kSlabRows, H, W, 3) u8
  std::vector<Worker> workers_;
  std::atomic<size_t> next_ = 0;  // next image, numbered through all rounds
  FirstError error_;
};

int run(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--list") {
    for (const MethodInfo& info : methods()) std::printf("%s\n", info.name.c_str());
    return 0;
  }
  if (argc != 4) {
    std::fprintf(stderr, "usage: peers_native METHOD PLAN.json THREADS | --list\n");
    return 2;
  }
  for (const MethodInfo& info : methods()) {
    if (info.name != argv[1]) continue;
    Native native(info, read_plan(argv[2]), std::max(1, std::atoi(argv[3])));
    serve(native);
    return 0;
  }
  std::fprintf(stderr, "peers_native: this build has no method '%s'\n", argv[1]);
  return 2;
}

}  // namespace
}  // namespace stoker::peers

int main(int argc, char** argv) {
  return stoker::run_program("peers_native", stoker::peers::run, argc, argv);
}
