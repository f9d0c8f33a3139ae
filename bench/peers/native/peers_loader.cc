// stoker's Loader as a participant: peers_loader FOLDER train|eval|cifar WORKERS fast|exact
// [shuffled|blocks]. It makes batches of 50 on a host device from files on disk (in the page
// cache), or from a store. It draws the plan's crops: seed 0, epoch = round. `cifar` reads CIFAR's
// binary files, in batches of 512. `shuffled` takes the samples in another order in each round,
// `blocks` in one that is shuffled by blocks of neighbours.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bench/peers/native/participant.h"
#include "bench/peers/native/plan.h"
#include "bench/report/program.h"
#include "pipeline/loader.h"

namespace stoker::peers {
namespace {

// The memory for a store: a small part of the data, as in a data set of a real one's size.
constexpr int64_t kReadAheadBytes = 32 << 20;
// The memory for two pools of blocks, which are a part of the data, too.
constexpr int64_t kReadAheadOfBlocks = 64 << 20;
constexpr int64_t kBlock = 16, kMixed = 16;

enum class Shuffle { none, all, blocks };

class LoaderParticipant final : public Participant {
 public:
  LoaderParticipant(const std::string& folder, Mode mode, int workers, PixelPolicy pixels,
                    Shuffle shuffle)
      : source_(open_source(
            folder, {.split = mode == Mode::cifar ? Split::train : Split::all,
                     .store = {.read_ahead_bytes = shuffle == Shuffle::blocks ? kReadAheadOfBlocks
                                                                              : kReadAheadBytes}})),
        augment_(augmentation(mode)),
        device_(make_host_device()),
        stream_(device_->make_stream()) {
    options_.epochs = -1;
    options_.feed.seek_index = "off";  // the rows of the plain JPEGs
    options_.batch_size = mode == Mode::cifar ? 512 : 50;
    // Else sample = position, so that round and image determine the draw.
    options_.shuffle = shuffle != Shuffle::none;
    if (shuffle == Shuffle::blocks) {
      options_.order =
          block_shuffled_order({.samples = source_->size(), .block = kBlock, .mixed = kMixed});
    }
    options_.feed.workers = workers;
    options_.feed.decode.pixels = pixels;
    options_.feed.on_bad_sample = OnBadSample::fail;
  }

  std::string version() const override { return ""; }

  // The Loader is kept between turns and is idle then, with a full ring. A turn takes the steps of
  // its rounds and ends when as many new steps are filled.
  int64_t run(int first_round, int rounds) override {
    const Step first = first_round * steps_per_epoch();
    if (!loader_ || next_ != first) restart(first);
    int64_t images = 0;
    for (const Step end = first + rounds * steps_per_epoch(); next_ < end; ++next_) {
      images += loader_->next(0, *stream_).header().valid;
    }
    wait_until_still();
    return images;
  }

  int64_t write_rows(const std::string& path) override {
    std::ofstream file(path, std::ios::binary);
    const size_t row = size_t{3} * augment_.output.width * augment_.output.height;
    int64_t images = 0;
    restart(0);
    for (; next_ < steps_per_epoch(); ++next_) {
      const DeviceBatch batch = loader_->next(0, *stream_);
      const auto bytes = static_cast<std::streamsize>(batch.header().valid * row);
      file.write(reinterpret_cast<const char*>(batch.images()), bytes);
      images += batch.header().valid;
    }
    if (!file.flush()) throw std::runtime_error(path + ": could not be written");
    return images;
  }

 private:
  Step steps_per_epoch() const {
    return (source_->size() + options_.batch_size - 1) / options_.batch_size;
  }

  void restart(Step first) {
    loader_.reset();
    options_.first_step = next_ = first;
    loader_ = std::make_unique<Loader>(*source_, augment_, std::vector{device_.get()}, options_);
    wait_until_still();
  }

  void wait_until_still() {
    if (options_.feed.workers == 0) return;  // next() decodes, so nothing is filled ahead
    const int64_t filled =
        (next_ - options_.first_step + options_.ring_depth) * options_.batch_size;
    while (loader_->stats().decode.items < filled) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  const std::unique_ptr<Source> source_;
  const AugmentSpec augment_;
  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Stream> stream_;
  LoaderOptions options_;
  std::unique_ptr<Loader> loader_;
  Step next_ = 0;  // the step that loader_ returns next
};

int run(int argc, char** argv) {
  const std::string order = argc == 6 ? argv[5] : "";
  if (argc != 5 && order != "shuffled" && order != "blocks") {
    std::fprintf(stderr,
                 "usage: peers_loader FOLDER train|eval|cifar WORKERS fast|exact "
                 "[shuffled|blocks]\n");
    return 2;
  }
  const Shuffle shuffle = order.empty()       ? Shuffle::none
                          : order == "blocks" ? Shuffle::blocks
                                              : Shuffle::all;
  const std::string pixels = argv[4];
  if (pixels != "fast" && pixels != "exact") throw std::invalid_argument("pixels '" + pixels + "'");
  LoaderParticipant loader(argv[1], mode_of(argv[2]), std::atoi(argv[3]),
                           pixels == "fast" ? PixelPolicy::fast : PixelPolicy::exact, shuffle);
  serve(loader);
  return 0;
}

}  // namespace
}  // namespace stoker::peers

int main(int argc, char** argv) {
  return stoker::run_program("peers_loader", stoker::peers::run, argc, argv);
}
