// The values that a Loader takes and returns: its options, the notes of a row, its state, its
// memory plan and its statistics. The files of this folder include this header, never the entry
// point (pipeline/loader.h). Values: copied freely, no threads, no errors.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/annotation/box_format.h"
#include "pipeline/augment.h"
#include "pipeline/order/sampler.h"
#include "pipeline/sample_order.h"
#include "pipeline/source.h"
#include "pipeline/step_shapes.h"
#include "staging/device_batch.h"
#include "staging/normalise.h"
#include "staging/stage_stats.h"
#include "staging/tracer.h"

namespace stoker {

struct MeasureHooks;
class DecodedCache;

enum class OnBadSample : uint8_t {
  substitute,  // another sample's pixels, weight 0, quarantined
  fail,        // the first bad sample ends the feed with an error
};

// Replaces u8 NHWC as the format of rows: (pixel / 255 - mean) / stddev.
struct RowFormat {
  PixelType type = PixelType::fp32;
  PixelOrder order = PixelOrder::nhwc;
  std::array<float, 3> mean{};  // of pixels / 255, RGB
  std::array<float, 3> stddev{1, 1, 1};
};

// How samples are read and decoded, and what happens to bad ones. Code that has its own Loader
// (training, evaluation) passes these options on as a whole, so that none is forgotten. Options
// that differ between Loaders (rows, ring, slots) are not in here.
struct FeedOptions {
  // Bytes of host memory that the feed takes at most: slabs, slots of host devices, scratch,
  // pictures on the way, files read ahead, the window of a store, shared memory, a cache in memory.
  // A picture that needs more waits until others are done; one that can never have so much is a bad
  // sample. Not counted are the data set's index and what a Python object returns. With a limit,
  // glibc gives freed blocks of 1 MiB and more back at once, in the whole process. 0: three
  // quarters of the memory that is free on the machine, or that its control group still allows.
  int64_t memory = 0;
  int workers = -1;  // threads that decode; -1: one per core; 0: inline in next(), without threads
  // Threads that read files for the workers; 0: the workers read. In both cases workers themselves
  // read a file that is in the page cache, because that takes less time than a hand-over.
  int io_threads = 2;
  DecodeOptions decode{};
  // Where to find the images' seek indexes, with which less of a JPEG file has to be read: auto:
  // beside the data (seek-index.bin, as `stoker pack` makes it), else in the cache directory; off;
  // or a path. With auto and more than one epoch, what the cache directory lacks is made on the way
  // through the first crops of the images, used from the next epoch on, and kept for the next run
  // (of at most 2^24 samples).
  // The pixels do not depend on it.
  std::string seek_index = "auto";
  // Keeps what decoding gives of a fixed part of the samples (pipeline/cache/decoded_cache.h).
  // Several Loaders may have the same. Null: none. The pixels do not depend on it.
  std::shared_ptr<DecodedCache> cache{};
  OnBadSample on_bad_sample = OnBadSample::substitute;
  double max_bad = 0.05;  // >= 1: a count; < 1: a share of the source; per epoch and process
};

// Several processes of one machine that are given the same data and options decode each row once
// (exchange/README.md), and fetch its sample once, if it is in a store. They need not begin or end
// together.
struct ShareOptions {
  std::string name{};  // the same in all of them: letters, digits, '_', '-', '.'; "": not shared
  // So many steps lie in shared memory. Who is further behind than that decodes by itself.
  int steps = 8;
  // Who is ahead waits for those that it would leave so far behind, for a tenth of its time at
  // most: so many seconds, which fill up again at that rate. 0: never.
  double wait_s = 10;
};

// The masks of objects in a batch.
enum class RowMasks : uint8_t {
  none,   // they are not made
  bytes,  // 0 or 1 for each pixel
  bits,   // eight pixels a byte, the leftmost in the lowest bit; lines begin with a byte
};
enum class TooManyObjects : uint8_t {
  keep_largest,  // by the area of their boxes; LoaderStats counts the others
  fail,          // it is a bad sample
};

// How what lies on the pictures travels in a batch, if a source has annotations: as columns of
// Loader::targets() (pipeline/row/annotation_columns.h lists them).
struct AnnotationOptions {
  int max_objects = 100;  // places in each row
  TooManyObjects too_many = TooManyObjects::keep_largest;
  BoxFormat box_format = BoxFormat::xyxy;
  RowMasks masks = RowMasks::none;
  int32_t ignore_label = 255;  // of a label image where there is no picture
  // Besides rows of max_objects places: the objects of all rows one behind the other, in columns
  // "packed_boxes" and so on, with object_offsets.
  bool packed = false;
  bool operator==(const AnnotationOptions&) const = default;
};

// Which of a sample's texts its row has.
enum class TextChoice : uint8_t {
  first,
  random,  // a function of (seed, epoch, sample), another one in each epoch
  all,     // each ended by a NUL
};
enum class TooLong : uint8_t {
  fail,  // it is a bad sample
  cut,   // behind the last whole character (of UTF-8) or number that has place
};

// How targets that vary (TargetColumn::varies) travel in a batch, on the host:
// pipeline/row/packed_values.h says in which form.
struct VaryingOptions {
  int max_bytes = 2048;  // of each such column and row
  TextChoice texts = TextChoice::first;
  TooLong too_long = TooLong::fail;
  bool operator==(const VaryingOptions&) const = default;
};

struct LoaderOptions {
  int batch_size = 256;  // rows per device and batch
  // A step comes in so many batches, one after the other, for a consumer that cannot hold all of
  // its rows at once. The global batch is that of all parts, and steps are counted whole.
  int parts = 1;
  uint64_t seed = 0;
  bool shuffle = true;
  // Which samples an epoch takes, in which order, instead of `shuffle`, which must be true then;
  // null: every sample once. It must be for as many samples as the source has.
  SharedOrder order{};
  // The sizes of steps (step_shapes.h), at most one of both: buckets, which say which samples a
  // step has, too, or a schedule. Null: all rows have the size of the AugmentSpec, which does not
  // matter otherwise. A batch has the size that its header says.
  SharedBuckets buckets{};
  std::shared_ptr<const ShapeSchedule> shapes{};
  LastBatch last_batch = LastBatch::pad;
  int rank = 0;  // of `world` processes that share the epoch; each has the same number of devices
  int world = 1;
  // The feed may end inside an epoch, after ceil(epochs * steps_per_epoch) steps; < 0: it never
  // ends.
  double epochs = 1;
  Step first_step = 0;  // the first step of a resumed feed
  EpochGrid grid{};     // of LoaderState, or of continue_at()
  // Added to the epoch number in every draw, to show the draws of a later epoch alone.
  int64_t first_epoch_offset = 0;
  FeedOptions feed{};
  int ring_depth = 4;  // slabs per device, >= 1
  // Staging slots per device, 0..3; with more than 0 there is a copy thread per device, with 0 a
  // host device's slab is used without a copy. -1: 0 for host devices, else 2. A consumer may hold
  // max_leases() batches.
  int slots = -1;
  // If a host device's slab is leased without a copy: how many of the ring's slabs a consumer may
  // hold at once, 1..ring_depth.
  int leases = 1;
  // For host devices only: the worker that fills a row converts it. (A GPU converts after the copy
  // over the bus.)
  std::optional<RowFormat> format{};
  AnnotationOptions annotations{};
  VaryingOptions varying{};
  std::string quarantine_file{};  // a JSONL file to which bad samples are appended; "": none
  // Hash every row's u8 pixels (RowNote::digest). The workers then also do what a GPU would do
  // behind the copy (device_edits.h).
  bool digests = false;
  // Other processes may fill rows, through Loader::remote_rows(). Without workers these fill all
  // but what they gave up. Steps have one part.
  bool remote_rows = false;
  ShareOptions share{};             // not with remote_rows
  Tracer* tracer = nullptr;         // takes spans and outlives the Loader; null: no tracing
  MeasureHooks* measure = nullptr;  // internal (pipeline/measure_hooks.h); mostly null
};

// A row as MixSpec changed it.
struct RowMix {
  MixDraw draw{};
  SampleId partner = -1;  // whose pixels and label are the rest of draw.own_share; -1: not mixed
};

// The record of a row; draw_row() draws again what was done to it. DeviceBatch::notes() has one per
// row.
struct RowNote {
  RowMix mix{};
  Size source{};            // pixels of the source image
  Size size{};              // pixels of the row; {}: those of the AugmentSpec
  SampleId pixels_of = -1;  // the sample of the row's own pixels; != id for a substitute
  // XXH3 of the row's pixels and of what lies on them, 0 without LoaderOptions::digests.
  uint64_t digest = 0;
  uint64_t repeat_index = 0;         // as in OrderedSample: 0 unless the epoch repeats the sample
  DecodeCode code = DecodeCode::ok;  // of the row's own sample
  bool bad = false;                  // its own sample was bad (code, or it could not be read)
  bool counts = false;               // weight > 0
  int32_t objects = 0;               // that lie on the row's picture
  Box picture{};                     // the part of the row that is no padding of the last steps
  // The samples whose pictures a stage put to the row's own (mosaic, mixup, copy_paste), in the
  // order in which they were drawn; -1 behind the last.
  std::array<SampleId, kMaxPictures - 1> partners = no_partners();
  // The sizes of the source's further pictures (AugmentView::picture), in the order of the views;
  // {} where a picture was not made.
  std::array<Size, kMaxPictures - 1> picture_sizes{};
  // A bit for each of the pictures, the own one's the lowest: it is the own sample's, because the
  // partner's could not be read.
  uint8_t replaced = 0;

  static constexpr std::array<SampleId, kMaxPictures - 1> no_partners() {
    std::array<SampleId, kMaxPictures - 1> none{};
    none.fill(-1);
    return none;
  }
};

// Draws again what was done to the pixels of a row: `spec` and `seed` of the Loader, `epoch` of the
// batch (BatchHeader), `note` of the row. There are no steps for a row without a picture
// (pixels_of < 0), nor for one of several samples, of which row_steps_text() knows. Where draws
// depend on what lies on the picture, `draws` must carry it (read_row_annotations).
void draw_row(const AugmentSpec& spec, uint64_t seed, int64_t epoch, const RowNote& note,
              Draws& draws, int view = 0);
// Sets `out` to what lies on the picture of a row, as `source` has it; reads the sample if it comes
// with that.
ReadStatus read_row_annotations(const Source& source, const RowNote& note, Annotations& out);
// Returns the text of the steps, with a line for each view; of a row of several samples, with a
// line for each of their pictures. `source`: whose annotations the steps may depend on, and whose
// files of several samples are read (`decode`: as the Loader does), or null.
std::string row_steps_text(const AugmentSpec& spec, uint64_t seed, int64_t epoch,
                           const RowNote& note, const Source* source = nullptr,
                           const DecodeOptions& decode = {});

inline const RowNote* row_notes(const DeviceBatch& batch) {
  return reinterpret_cast<const RowNote*>(batch.notes());
}

// The state of a loader: what has been handed out, in whole steps. O(1) to store, exact to resume
// from.
struct LoaderState {
  Step next_step = 0;  // over all epochs
  int64_t epoch = 0;
  int64_t step_in_epoch = 0;
  uint64_t fingerprint = 0;  // of what determines the pixels, and which of them a step holds
  EpochGrid grid{};          // of the options
};

struct MemoryPlan {
  int64_t ring_bytes = 0;     // pinned, all devices
  int64_t slot_bytes = 0;     // on the devices
  int64_t scratch_bytes = 0;  // of workers, and of buffers for files that are read ahead
  int64_t store_bytes = 0;    // samples of a store that are fetched before they are read
  int64_t share_bytes = 0;    // shared memory of LoaderOptions::share, once for all its processes
  int64_t cache_bytes = 0;    // decoded pictures that are kept in memory, once all are there
  // Not in the total: what pictures and files may take that need more than a worker has: a
  // progressive JPEG, an interlaced PNG, a label image, ... It is bound by the limit, and by what
  // all workers together need for pictures of max_pixels.
  int64_t frame_bytes = 0;
  // In all, as far as some of the pictures show (feed/picture_look.h).
  int64_t expected_bytes = 0;
  int64_t limit_bytes = 0;  // FeedOptions::memory, or its default
  int64_t total_bytes() const {
    return ring_bytes + slot_bytes + scratch_bytes + store_bytes + share_bytes + cache_bytes;
  }
  int64_t most_bytes() const { return total_bytes() + frame_bytes; }
};

// Counts of FeedOptions::cache.
struct DecodedCacheStats {
  int64_t samples = 0;               // of the data set
  int64_t places = 0;                // so many of them have a place
  int64_t place_bytes = 0;           // of each place
  int64_t found = 0;                 // samples that were there when the Loader began
  int64_t hits = 0, misses = 0;      // rows made of what is kept, and rows made of files
  int64_t kept = 0, kept_bytes = 0;  // samples that this process has written, of all Loaders
  std::string folder{};              // "": in memory
  std::string problem{};             // why nothing more is kept; "": it is
};
// Returns one line: "640 of 1280 rows came from it (50.00%); ...".
std::string describe(const DecodedCacheStats& stats);

// Counts of RemoteRows.
struct RemoteStats {
  int64_t rows = 0;        // delivered and taken
  int64_t claims = 0;      // made
  int64_t given_up = 0;    // their rows were asked for again
  int64_t taken_back = 0;  // of those: because they were late
  int64_t refused = 0;     // deliveries of claims that had been given up
};

// Counts of LoaderOptions::share: rows, but for the last three.
struct ShareStats {
  int64_t taken = 0;       // that others had decoded
  int64_t given = 0;       // decoded here, and put there for others
  int64_t alone = 0;       // decoded here, and not put there: behind or ahead of the others, or bad
  int64_t taken_over = 0;  // blocks whose owner had died or was late
  int64_t corrupt = 0;     // blocks that were not what their owner had sealed
  int64_t waited_ns = 0;   // for those behind
};

struct LoaderStats {
  // Items: files; service: reading; input wait: no ticket came; output wait: no buffer was free.
  StageSnapshot read;
  // Items and service of files that workers found in memory; `read` has the others.
  StageSnapshot cached_read;
  // Items: rows; service: decode + augment; input wait: workers had nothing to do.
  StageSnapshot decode;
  std::vector<StageSnapshot> rings;    // per device; see PinnedRing::stats
  std::vector<StageSnapshot> staging;  // per device; see Stager::stats
  RemoteStats remote;                  // of LoaderOptions::remote_rows
  ShareStats share;                    // of LoaderOptions::share
  int64_t bad_samples = 0;
  int64_t memory_waits = 0;  // how often a worker waited until others gave memory back
  int64_t memory_taken = 0;  // the most bytes that pictures had beyond what their workers have
  // Rows with more objects than AnnotationOptions::max_objects, and the objects left out.
  int64_t full_rows = 0, objects_left_out = 0;
  // Rows decoded with their image's index, indexes that did not fit, and bytes that were not read
  // because no row showed them.
  SeekUse seek_index;
  std::optional<StoreStats>
      store;  // of the source, which may have other readers; nullopt: no store
  std::optional<DecodedCacheStats> cache;  // nullopt: the options have none
  int64_t seek_recorded = 0;               // samples whose index was made or made longer on the way
};

}  // namespace stoker
