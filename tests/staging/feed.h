// A feed for the staging tests: fills slabs with bytes that follow from the step, and checks them.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "staging/pinned_ring.h"
#include "staging/stager.h"

namespace stoker::testing {

inline BatchShape small_shape() {
  return {.rows = 3, .height = 5, .width = 7, .note_bytes_per_row = 11};
}

// The ways from a slab to the consumer: through slots, or (0) without.
struct Staging {
  int slots = 0;
  bool host_accessible = true;
  bool zero_copy() const { return slots == 0 && host_accessible; }
  std::string name() const {
    return std::to_string(slots) + " slots" + (host_accessible ? "" : ", not host accessible");
  }
};

inline std::vector<Staging> every_staging() {
  std::vector<Staging> ways = {{.slots = 0, .host_accessible = false}};
  for (int slots = 0; slots <= Stager::kMaxSlots; ++slots) ways.push_back({.slots = slots});
  return ways;
}

inline uint8_t pixel_of(Step step, size_t index) {
  return static_cast<uint8_t>(static_cast<uint64_t>(step) * 37 + index * 11 + 5);
}

inline Slab& fill(Slab& slab, const BatchLayout& layout, Step step) {
  const BatchShape& shape = layout.shape();
  size_t rows = static_cast<size_t>(shape.rows);
  for (size_t i = 0; i < rows * layout.image_bytes(); ++i) slab.images[i] = pixel_of(step, i);
  for (size_t row = 0; row < rows; ++row) {
    slab.labels[row] = static_cast<int32_t>(step * 100 + static_cast<Step>(row));
    slab.weights[row] = static_cast<float>(step) + 0.5F;
    slab.ids[row] = step * 1000 + static_cast<SampleId>(row);
  }
  std::memset(slab.notes, static_cast<int>(step & 0xFF),
              rows * static_cast<size_t>(shape.note_bytes_per_row));
  slab.header->valid = static_cast<int>(rows);
  slab.header->epoch = step / 10;
  return slab;
}

// The device part of a batch, which compute work may use after the lease has ended.
struct DeviceView {
  explicit DeviceView(const DeviceBatch& batch)
      : images(batch.images()), labels(batch.labels()), weights(batch.weights()) {}
  // A copy of a batch's device part.
  DeviceView(const std::byte* base, const BatchLayout& layout)
      : images(reinterpret_cast<const uint8_t*>(base + layout.images_offset())),
        labels(reinterpret_cast<const int32_t*>(base + layout.labels_offset())),
        weights(reinterpret_cast<const float*>(base + layout.weights_offset())) {}
  const uint8_t* images;
  const int32_t* labels;
  const float* weights;
};

// Returns "" if the view has exactly step's bytes, otherwise what differs. Reads device memory:
// only for host devices, and in the stream's order.
inline std::string difference(const DeviceView& view, const BatchLayout& layout, Step step) {
  const BatchShape& shape = layout.shape();
  size_t rows = static_cast<size_t>(shape.rows);
  for (size_t i = 0; i < rows * layout.image_bytes(); ++i) {
    if (view.images[i] != pixel_of(step, i)) {
      return "step " + std::to_string(step) + ": pixel byte " + std::to_string(i) + " is " +
             std::to_string(view.images[i]);
    }
  }
  for (size_t row = 0; row < rows; ++row) {
    std::string where = "step " + std::to_string(step) + " row " + std::to_string(row);
    if (view.labels[row] != step * 100 + static_cast<Step>(row)) return where + ": label";
    if (view.weights[row] != static_cast<float>(step) + 0.5F) return where + ": weight";
  }
  return "";
}

// The same for the host part, at any time during the lease.
inline std::string host_difference(const DeviceBatch& batch, const BatchLayout& layout, Step step) {
  const BatchShape& shape = layout.shape();
  std::string where = "step " + std::to_string(step);
  if (batch.header().step != step)
    return where + ": header says " + std::to_string(batch.header().step);
  if (batch.header().valid != shape.rows || batch.header().ready_ns <= 0) return where + ": header";
  for (int row = 0; row < shape.rows; ++row) {
    if (batch.ids()[row] != step * 1000 + row) return where + ": id";
  }
  for (int i = 0; i < shape.rows * shape.note_bytes_per_row; ++i) {
    if (batch.notes()[i] != static_cast<std::byte>(step & 0xFF)) return where + ": note";
  }
  return "";
}

// Fills steps [first, end) on its own thread and poisons each slab first, so that a late reader of
// an old step notices. Ends early when the ring is stopped.
class Producer {
 public:
  Producer(PinnedRing& ring, Step first, Step end)
      : thread_([&ring, first, end] {
          for (Step step = first; step < end && ring.wait_free(step); ++step) {
            Slab& slab = ring.begin(step);
            std::memset(slab.base, 0xDB, ring.layout().header_offset());
            fill(slab, ring.layout(), step);
            ring.commit(step);
          }
        }) {}
  ~Producer() { thread_.join(); }
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

 private:
  std::thread thread_;
};

// A stager with all that it needs: steps [first, end) on a stream, through a ring with a producer.
struct StagedFeed {
  struct Options {
    int slots = 0, capacity = 2;
    Step first = 0, end = 0;
    Step produced = end;
    int leases = 1;
  };
  StagedFeed(Device& device, const Options& options)
      : compute(device.make_stream()),
        ring(device, BatchLayout(small_shape()), options.capacity, options.first),
        producer(ring, options.first, options.produced),
        stager(device, ring, options.slots, options.first, options.end, options.leases) {}

  DeviceBatch next() { return stager.next(*compute); }

  std::unique_ptr<Stream> compute;
  PinnedRing ring;
  Producer producer;
  Stager stager;
};

}  // namespace stoker::testing
