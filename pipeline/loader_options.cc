#include "pipeline/loader_options.h"

#include <cmath>
#include <stdexcept>
#include <string>

#include "staging/stager.h"

namespace stoker {
namespace {

constexpr int kMaxThreads = 1024;  // more is a mistake, and costs memory per thread

void require(bool good, const std::string& what) {
  if (!good) throw std::invalid_argument("LoaderOptions: " + what);
}

void require_range(const char* name, int64_t value, int64_t low, int64_t high) {
  require(value >= low && value <= high, std::string(name) + " is " + std::to_string(value) +
                                             ", must be " + std::to_string(low) + " to " +
                                             std::to_string(high));
}

}  // namespace

void validate(const LoaderOptions& options, const std::vector<Device*>& devices) {
  require(!devices.empty(), "no devices: at least one is needed");
  for (size_t i = 0; i < devices.size(); ++i) {
    require(devices[i] != nullptr, "device " + std::to_string(i) + " is null");
  }
  for (const Device* device : devices) {
    require(!options.format || device->host_accessible(),
            "format is for host devices, " + device->name() + " converts what it was given");
  }
  require_range("batch_size", options.batch_size, 1, 1 << 24);
  require_range("ring_depth", options.ring_depth, 1, 1 << 16);
  require_range("slots", options.slots, -1, Stager::kMaxSlots);
  require_range("leases", options.leases, 1, options.ring_depth);
  require_range("workers", options.workers, -1, kMaxThreads);
  require_range("spare_workers", options.spare_workers, 0, kMaxThreads);
  require_range("io_threads", options.io_threads, 0, kMaxThreads);
  require_range("world", options.world, 1, 1 << 20);
  require(options.rank >= 0 && options.rank < options.world,
          "rank is " + std::to_string(options.rank) + " of a world of " +
              std::to_string(options.world) + ", must be 0 to world - 1");
  require(int64_t{options.world} * static_cast<int64_t>(devices.size()) * options.batch_size <
              int64_t{1} << 31,
          "the global batch of " + std::to_string(options.world) + " ranks x " +
              std::to_string(devices.size()) + " devices x " + std::to_string(options.batch_size) +
              " rows is 2^31 rows or more");
  require(!std::isnan(options.epochs), "epochs is not a number");
  require(options.max_bad >= 0,
          "max_bad is " + std::to_string(options.max_bad) + ", must be a share below 1 or a count");
  require(options.first_epoch_offset >= 0, "first_epoch_offset is " +
                                               std::to_string(options.first_epoch_offset) +
                                               ", must not be negative");
  require(
      options.decode.max_pixels >= 1,
      "decode.max_pixels is " + std::to_string(options.decode.max_pixels) + ", must be at least 1");
}

}  // namespace stoker
