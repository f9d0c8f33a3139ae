// use_solarize DATA LIBRARY: loads the operation and prints what it changed. About half of the
// samples must differ from those without it, and they must be the same for any number of workers.
#include <cstdio>
#include <vector>

#include "stoker/pipeline/augment/operation_plugin.h"
#include "stoker/pipeline/loader.h"

namespace {

// Returns the digest of every sample's pixels in one epoch.
std::vector<uint64_t> digests(const stoker::Source& source, const stoker::AugmentSpec& augment,
                              int workers) {
  auto device = stoker::make_host_device();
  auto stream = device->make_stream();
  stoker::Loader loader(
      source, augment, {device.get()},
      {.batch_size = 50, .seed = 5, .feed = {.workers = workers}, .digests = true});
  std::vector<uint64_t> found(static_cast<size_t>(source.size()));
  while (const stoker::DeviceBatch batch = loader.next(0, *stream)) {
    for (int row = 0; row < batch.shape().rows; ++row) {
      found[static_cast<size_t>(batch.ids()[row])] = stoker::row_notes(batch)[row].digest;
    }
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto source = stoker::open_source(argv[1], stoker::Split::train);
  stoker::AugmentSpec augment("random_resized_crop", {32, 32});
  const std::vector<uint64_t> plain = digests(*source, augment, 2);
  augment.add(stoker::open_operation(argv[2]));
  const std::vector<uint64_t> solarized = digests(*source, augment, 2);
  size_t changed = 0;
  for (size_t i = 0; i < plain.size(); ++i) changed += plain[i] != solarized[i];
  std::printf("%s\n%zu of %zu rows changed\n", augment.describe().c_str(), changed, plain.size());
  const bool half = changed > plain.size() * 2 / 5 && changed < plain.size() * 3 / 5;
  return half && solarized == digests(*source, augment, 0) ? 0 : 1;
}
