// their_trainer DATA: trains a perceptron on the images in DATA (from `stoker make-shapes`) and
// checks that every sample comes once per epoch and that a resumed feed is the same.
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "perceptron.h"
#include "stoker/pipeline/loader.h"
#include "stoker/version.h"

namespace {

constexpr stoker::Size kSize{16, 16};
constexpr int kBatch = 64;
constexpr int kEpochs = 6;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "their_trainer: not so: %s\n", what);
  std::exit(1);
}

stoker::LoaderOptions options(stoker::Step first_step = 0) {
  return {.batch_size = kBatch,
          .seed = 7,
          .epochs = kEpochs,
          .first_step = first_step,
          .feed = {.workers = 2},
          .digests = true};
}

// Trains on all batches of the loader; returns the digests of the rows, in order.
std::vector<uint64_t> train(stoker::Loader& loader, stoker::Stream& stream, Perceptron& net,
                            int64_t samples) {
  std::vector<uint64_t> digests;
  std::set<stoker::SampleId> seen;
  double loss = 0;
  while (stoker::DeviceBatch batch = loader.next(0, stream)) {
    batch.synchronize();  // this trainer reads on its own thread, not on the stream
    loss += net.train(batch.images(), batch.labels(), batch.weights(), batch.shape().rows, 0.001f);
    for (int row = 0; row < batch.shape().rows; ++row) {
      digests.push_back(stoker::row_notes(batch)[row].digest);
      if (batch.weights()[row] > 0) require(seen.insert(batch.ids()[row]).second, "a sample once");
    }
    if (batch.header().step_in_epoch + 1 < loader.steps_per_epoch()) continue;
    std::printf("epoch %ld: %zu samples, loss %.3f\n", static_cast<long>(batch.header().epoch),
                seen.size(), loss / static_cast<double>(seen.size()));
    require(static_cast<int64_t>(seen.size()) == samples, "every sample of the epoch");
    require(batch.header().epoch + 1 < kEpochs || loss < 2.1 * static_cast<double>(samples),
            "it learns: ln 10 = 2.3 is where it starts");
    seen.clear();
    loss = 0;
  }
  return digests;
}

}  // namespace

int main(int argc, char** argv) {
  require(argc == 2, "one argument, the folder of pictures");
  std::printf("stoker %s\n", STOKER_VERSION);
  const auto source = stoker::open_source(argv[1], stoker::Split::train);
  const stoker::AugmentSpec augment("resize", kSize);
  auto device = stoker::make_host_device();
  auto stream = device->make_stream();

  Perceptron net(3 * kSize.width * kSize.height, 48,
                 static_cast<int>(source->class_names().size()));
  stoker::Loader loader(*source, augment, {device.get()}, options());
  const std::vector<uint64_t> all = train(loader, *stream, net, source->size());

  const stoker::Step half = loader.steps_per_epoch() * kEpochs / 2;  // an epoch's end
  stoker::Loader resumed(*source, augment, {device.get()}, options(half));
  const std::vector<uint64_t> rest = train(resumed, *stream, net, source->size());
  require(std::equal(rest.rbegin(), rest.rend(), all.rbegin()) && rest.size() * 2 == all.size(),
          "the same rows after a resume");
}
