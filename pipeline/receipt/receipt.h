// The receipt of a run: digests of what was delivered, so that two runs can be compared. Three
// files in one directory:
//   receipt.json       describes the run (fingerprint, seed, policies, libraries); per epoch the
//                      number of rows and an order-independent digest over (sample id, pixels), and
//                      a digest per step; written to a temporary file and renamed
//   receipt_steps.bin  one StepRecord per step, appended; the epochs are sums of it, so a run
//                      can continue from any earlier step
//   receipt_rows.bin   8 bytes per row, appended up to a bound; a diff finds the sample with it
// Only rows that count (weight > 0) are in it. Epoch digests do not depend on workers, devices,
// ranks, batch size or resume point. Rank r > 0 writes its part to receipt.rank<r>.json and so on;
// readers add the parts. Memory: 40 bytes per step. Threads: add() from any, a device's batches in
// order; the other functions from one. Errors: std::runtime_error with the path;
// std::invalid_argument if the loader takes no digests.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/files/digest.h"
#include "pipeline/loader_types.h"

namespace stoker {

class Loader;

struct ReceiptInfo {
  using Entries = std::vector<std::pair<std::string, std::string>>;
  std::string version;       // of stoker
  uint64_t fingerprint = 0;  // Loader::fingerprint()
  uint64_t seed = 0;
  int64_t steps_per_epoch = 1;
  int rows = 1;     // per device and step
  int devices = 1;  // of this process
  int rank = 0;
  int world = 1;
  Entries policies;   // what determines the pixels, in words
  Entries options;    // what does not affect the pixels: workers, ring depth, ...
  Entries libraries;  // name, version
  int64_t global_batch() const { return int64_t{rows} * devices * world; }
};

// Fills everything except version and libraries, from the arguments of the loader.
ReceiptInfo receipt_info(const Loader& loader, const Source& source, const AugmentSpec& augment,
                         const LoaderOptions& options, int devices);

struct StepRecord {
  uint64_t digest = 0;  // sum over the rows of a mix of (row, id, pixels): order matters
  Digest128 epoch_sum;  // sum over the rows of a mix of (id, pixels): order does not matter
  uint32_t rows = 0;    // with weight > 0
  uint32_t epoch = 0;
  // Adds a row that counts: `row` is its place in the global batch.
  void add(SampleId id, uint64_t digest_of_row, int64_t row);
};
struct RowRecord {
  uint32_t id = 0;      // low half
  uint32_t digest = 0;  // low half
  bool operator==(const RowRecord&) const = default;
};

struct EpochDigest {
  int64_t epoch = 0;
  int64_t steps = 0;  // delivered so far
  int64_t rows = 0;   // with weight > 0
  Digest128 digest;
  bool complete = false;
  bool operator==(const EpochDigest&) const = default;
};
std::string to_string(const Digest128& digest);  // 32 hexadecimal digits

class Receipt {
 public:
  static constexpr int64_t kMaxRowBytes = int64_t{64} << 20;  // size of receipt_rows.bin

  // With step 0 a new receipt begins. Another first step continues the receipt in `directory`,
  // which is cut back to that step (what a run wrote after its last checkpoint is dropped); if
  // there is none, a receipt of the rest begins. Throws if it belongs to another run or ends before
  // first_step.
  Receipt(const std::string& directory, const ReceiptInfo& info, Step first_step,
          int64_t max_row_bytes = kMaxRowBytes);
  ~Receipt();  // does not save
  Receipt(const Receipt&) = delete;
  Receipt& operator=(const Receipt&) = delete;

  void add(int device, const DeviceBatch& batch);
  void add(int device, const BatchHeader& header, std::span<const SampleId> ids,
           std::span<const RowNote> notes);
  // Writes everything added so far to the disk. Save before the checkpoint of the same step: then
  // the receipt is never behind. REQUIRES: no add() at the same time.
  void save();

  std::vector<EpochDigest> epochs() const;  // of the steps that all devices have added
  Step next_step() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
