// Shared by the receipt's tests: a run that is delivered into a receipt.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "pipeline/receipt/diff.h"
#include "pipeline/receipt/receipt.h"
#include "pipeline/source/synthetic_source.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/temp_folder.h"

namespace stoker::testing {

inline constexpr int64_t kSamples = 53;

struct Delivery {
  int batch = 8;  // per device
  int devices = 1;
  int rank = 0;
  int world = 1;
  int workers = 1;
  double epochs = 3;
  uint64_t seed = 4;
  Step first_step = 0;
  int64_t steps = 1 << 30;  // at most
  int64_t max_row_bytes = Receipt::kMaxRowBytes;
  bool save = true;
  bool digests = true;
};

class ReceiptTest : public ::testing::Test {
 protected:
  static LoaderOptions options_of(const Delivery& run) {
    return {.batch_size = run.batch,
            .seed = run.seed,
            .rank = run.rank,
            .world = run.world,
            .epochs = run.epochs,
            .first_step = run.first_step,
            .feed = {.workers = run.workers, .max_bad = 10},
            .digests = run.digests};
  }

  // Delivers into the receipt in folder `name`; one thread takes all devices' batches.
  std::vector<EpochDigest> run(const std::string& name, const Delivery& run) {
    const LoaderOptions options = options_of(run);
    std::vector<std::unique_ptr<Device>> devices;
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<Device*> pointers;
    for (int i = 0; i < run.devices; ++i) {
      devices.push_back(make_host_device(i));
      streams.push_back(devices.back()->make_stream());
      pointers.push_back(devices.back().get());
    }
    Loader loader(source(), augment_, pointers, options);
    ReceiptInfo info = receipt_info(loader, source(), augment_, options, run.devices);
    info.version = "1.2.3";
    info.libraries = {{"libjpeg-turbo", "2.1.5"}};
    Receipt receipt(path(name), info, run.first_step, run.max_row_bytes);
    const int64_t steps = std::min(run.steps, loader.end_step() - run.first_step);
    for (int64_t step = 0; step < steps; ++step) {
      for (int device = run.devices - 1; device >= 0; --device) {
        const DeviceBatch batch = loader.next(device, *streams[device]);
        receipt.add(device, batch);
      }
    }
    if (run.save) receipt.save();
    return receipt.epochs();
  }

  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  nlohmann::json json(const std::string& name) const {
    return nlohmann::json::parse(std::ifstream(path(name) + "/receipt.json"));
  }
  void expect_same_files(const std::string& a, const std::string& b) const {
    for (const char* file : {"receipt.json", "receipt_steps.bin", "receipt_rows.bin"}) {
      const auto content = [&](const std::string& name) {
        std::ifstream stream(path(name) + "/" + file, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(stream), {});
      };
      EXPECT_EQ(content(a), content(b)) << file << " of " << a << " and " << b;
    }
  }
  virtual const Source& source() { return *raw_; }

  TempFolder folder_;
  std::unique_ptr<Source> raw_ = make_synthetic_source(kSamples, {16, 16}, 5, 2);
  AugmentSpec augment_ = pad_spec();
};

}  // namespace stoker::testing
