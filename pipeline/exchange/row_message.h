// The form in which rows travel from a machine that filled them to the feed that hands them out: a
// head, and behind it a slab of just these rows (BatchLayout), whose pixels are u8 whatever the
// feed's own format is; and apart from it what was found out about bad samples. Both sides have one
// version of stoker and the same kind of machine: numbers are written as they lie in memory. Pure
// functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/row/quarantine.h"
#include "staging/batch_layout.h"
#include "staging/pinned_ring.h"

namespace stoker {

// Rows of one device's batch. `step` counts batches over all epochs.
struct RowRange {
  Step step = 0;
  int32_t device = 0;
  int32_t first_row = 0;
  int32_t rows = 0;
  bool operator==(const RowRange&) const = default;
};

// `batch` is the shape of the feed's batches with u8 pixels.
BatchLayout message_layout(const BatchShape& batch, int rows);
size_t message_bytes(const BatchShape& batch, int rows);

// Writes the head, and returns the slab to fill, which lies in the message. REQUIRES:
// message.size() is message_bytes(batch, range.rows).
Slab begin_message(std::span<std::byte> message, const BatchShape& batch, const RowRange& range,
                   uint64_t fingerprint);

// Returns the slab in a message, only to be read. Throws std::invalid_argument with both values if
// it holds other rows, is of another feed or has another size.
const Slab read_message(std::span<const std::byte> message, const BatchShape& batch,
                        const RowRange& range, uint64_t fingerprint);

// Empty for no bad samples.
std::vector<uint8_t> pack_bad_samples(const std::vector<BadSample>& bad);
// Throws std::invalid_argument.
std::vector<BadSample> unpack_bad_samples(std::span<const uint8_t> packed);

}  // namespace stoker
