// The columns of a batch for targets that vary (captions, tokens): LoaderOptions::varying says in
// which form, and packed_values.h how a finished batch has them. They lie in the host part of a
// slab. Before a batch is finished, each row has a place of max_bytes for its values, and the
// number of these where its offset will be. Owner: RowFiller. Threads: any, each row by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pipeline/augment.h"
#include "pipeline/loader_types.h"
#include "pipeline/source.h"
#include "staging/pinned_ring.h"

namespace stoker {

// Returns a source's columns as a batch has them: those that vary have a place for max_bytes.
// Behind them come the columns of offsets, one for each of these. They have two numbers for each
// row, of which rows + 1 are used.
std::vector<TargetColumn> row_columns(std::span<const TargetColumn> columns,
                                      const VaryingOptions& options);

// Throws InvalidField for options that cannot be, for batches of so many rows.
void check_varying(const Source& source, const AugmentSpec& augment, const VaryingOptions& options,
                   int rows);

class VaryingColumns {
 public:
  VaryingColumns(const Source& source, const AugmentSpec& augment, const LoaderOptions& options);

  bool any() const { return !columns_.empty(); }
  int64_t count() const { return std::ssize(columns_); }
  // Writes a row's values, those that read_targets() gave. `seed`: repeat_seed() of the Loader's.
  // Returns "" or what is wrong with them.
  std::string write(const SampleTargets& targets, uint64_t seed, int64_t epoch, SampleId id,
                    Slab& slab, int row) const;
  // Writes a row without values, as that of a bad sample.
  void write_nothing(Slab& slab, int row) const;
  // Packs a batch whose rows are complete.
  void pack(Slab& slab, int rows) const;
  // Returns a digest of a written row.
  uint64_t digest(const Slab& slab, int row) const;

 private:
  struct Column {
    TargetColumn target;
    size_t values, offsets;  // among the columns of a batch
    size_t row_bytes;        // place of a row's values
    size_t value_bytes;
  };
  // The place of a row's values, and their number.
  struct Place {
    std::byte* values;
    int32_t& count;
  };
  static Place place_of(const Column& column, const Slab& slab, int row);
  std::string write_numbers(const Column& column, std::string_view values, Place out) const;
  std::string write_texts(std::string_view texts, const RandomKey& key, uint32_t number,
                          const Column& column, Place out) const;
  std::string write_all(std::string_view texts, const Column& column, Place out) const;
  std::string too_long(const Column& column, size_t bytes) const;

  const VaryingOptions options_;
  const StageList stages_;
  std::vector<Column> columns_;
};

}  // namespace stoker
