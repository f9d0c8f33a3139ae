// Shared by the Loader's tests: small sources, a feed with its devices, and delivered batches to
// compare. Pixels are read where a consumer reads them: by work on the compute stream, after the
// lease was given back, so that only the events keep the slot from being filled too early.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/exchange/remote_rows.h"
#include "pipeline/loader.h"
#include "tests/support/fake_source.h"
#include "tests/support/sanitizers.h"

namespace stoker::testing {

std::vector<uint8_t> jpeg_file(int width, int height, uint64_t seed);
// Bytes that are no picture, or only a part of one.
std::vector<uint8_t> random_bytes(size_t count);
std::vector<uint8_t> text_bytes(const std::string& text);
std::vector<uint8_t> truncated(std::vector<uint8_t> file, size_t cut);
// `samples` small JPEG files of different sizes and contents, all different.
std::unique_ptr<FakeSource> jpeg_source(int64_t samples);
// Partly in memory, so that both ways to the workers are taken, also within a pair.
std::unique_ptr<FakeSource> half_cached_source(int64_t samples = 41);
// The same, with samples that cannot be read or decoded.
std::unique_ptr<FakeSource> faulty_source(int64_t samples = 41);

AugmentSpec crop_spec(int side = 24);  // for jpeg_source: random crop, flip and colours
AugmentSpec pad_spec(int side = 16);   // for raw sources of that side: shift and flip

// A feed whose rows others fill or share. A batch has more rows than a ticket.
LoaderOptions exchange_options(int workers, int batch = 20);

struct DeliveredRow {
  SampleId id = 0;
  int label = 0;
  float weight = 0;
  uint64_t pixels = 0;  // digest of what the device got
  uint64_t noted = 0;   // digest in the note
  SampleId pixels_of = 0;
  DecodeCode code = DecodeCode::ok;
  bool bad = false;
  uint64_t repeat_index = 0;
  bool operator==(const DeliveredRow&) const = default;
};
struct Delivered {
  Step step = 0;
  int64_t epoch = 0;
  int64_t step_in_epoch = 0;
  int valid = 0;
  std::vector<DeliveredRow> rows;
  bool operator==(const Delivered&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Delivered& batch);
int64_t rows_in(const std::vector<Delivered>& batches);

// For tests of times, which sanitizers multiply, and of threads, of which ThreadSanitizer adds
// some.
inline constexpr bool kSanitizer = kAddressSanitizer || kThreadSanitizer;

// nasty: late copies, poisoned memory; the host cannot access the memory of every other device
// far: the same, but the host can access the memory of no device
enum class DeviceKind { host, nasty, far };

class Feed {
 public:
  Feed(const Source& source, const AugmentSpec& augment, const LoaderOptions& options,
       int devices = 1, DeviceKind kind = DeviceKind::host);
  ~Feed();
  // Takes one step on all devices, with their rows one after the other; false at the end of the
  // feed.
  bool next(Delivered& batch);
  // Takes one step on one device; calls `look` with the batch while it is leased.
  bool next(int device, Delivered& batch,
            const std::function<void(const DeviceBatch&)>& look = nullptr);
  std::vector<Delivered> take(int64_t steps);  // at most
  std::vector<Delivered> all() { return take(1 << 30); }
  Loader& loader() { return *loader_; }
  Stream& stream(int device) { return *streams_[device]; }
  void destroy() { loader_.reset(); }

 private:
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::unique_ptr<Loader> loader_;
};

// Fills rows of a feed with remote_rows, as a machine of its own would, until it ends.
void fill_remotely(RemoteRows& rows, const Source& source, const AugmentSpec& augment,
                   const LoaderOptions& options);

// The columns of all batches of the first device, byte for byte, with what a device is told to do.
std::vector<std::byte> all_bytes(Feed& feed);

}  // namespace stoker::testing
