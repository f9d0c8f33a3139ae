// How a Loader divides its memory (FeedOptions::memory), and bounds of what one worker allocates
// while it fills rows; the rest of a MemoryPlan is exact. Threads: any.
#pragma once

#include <cstdint>
#include <optional>

#include "pipeline/augment.h"
#include "pipeline/feed/picture_look.h"
#include "pipeline/loader_types.h"
#include "pipeline/source.h"

namespace stoker {

// Returns the bytes kept between rows, for raw samples and for images that are decoded row by row.
int64_t worker_scratch_bytes(const Source& source, const AugmentSpec& augment,
                             const DecodeOptions& decode);
// Returns what it is expected to have, with the buffer of its file; without a look, as for a
// photograph of half a megapixel.
int64_t worker_usual_bytes(const Source& source, const AugmentSpec& augment,
                           const DecodeOptions& decode, const std::optional<PictureLook>& look);
// Measured (bench/results/memory_expected.md): code and tables of libraries; the stack and the
// allocator's share of each worker.
inline constexpr int64_t kUsualCodeBytes = int64_t{9} << 18, kUsualThreadBytes = int64_t{80} << 10;
// An allowance for the threads and connections of a store.
inline constexpr int64_t kUsualClientBytes = int64_t{6} << 20;
// Returns the bytes in addition while an image is decoded that needs its whole frame at once.
int64_t worker_frame_bytes(const Source& source, const AugmentSpec& augment,
                           const DecodeOptions& decode);

// The shares of what workers and I/O threads need beyond what is made once. All of these together
// never exceed the limit. A worker that needs more than its own waits for the rest
// (decode/memory_budget.h), which the largest picture may take as a whole.
struct MemoryShares {
  int64_t limit = 0;
  int64_t own = 0;          // of each worker, for scratch and the buffers of its files
  int64_t large_files = 0;  // of files that are read ahead, beyond the buffers that are kept
  int64_t pictures = 0;     // of pictures that need more than their worker has
};

// The limit that a feed keeps to unless it is told: three quarters of the memory that is free.
int64_t default_memory();
// `needed`: bytes that are there before the first row; `own`: the most that a worker needs for what
// it reads by rows. Throws InvalidField with the numbers if the limit of the options is too small.
MemoryShares share_memory(const FeedOptions& options, int64_t needed, int64_t own, int64_t workers,
                          bool reads_ahead);
// Throws InvalidField with the numbers if more than `tolerated` pictures whose size the source
// knows can never have what they need, whatever is drawn for them and whatever format they have.
void refuse_unfit_pictures(const Source& source, const AugmentSpec& augment,
                           const DecodeOptions& decode, const MemoryShares& shares,
                           int64_t tolerated);

}  // namespace stoker
