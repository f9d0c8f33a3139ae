// Makes a data set's seek indexes and shows a progress bar, for `stoker index` and `stoker train
// --build-seek-index`. Owner: the command. Threads: one; Ctrl-C and SIGTERM stop it cleanly. Throws
// what build_seek_indexes() throws.
#pragma once

#include <optional>
#include <string>

#include "pipeline/seek_index/build.h"
#include "tools/option/feed_options.h"

namespace stoker {

struct SeekIndexRun {
  std::optional<SeekIndexTotals> totals;  // nullopt: stopped, and nothing was written
  int signal = 0;                         // the signal that stopped it; 0: none
  double seconds = 0;
};

SeekIndexRun make_seek_indexes(const Source& source, const std::string& path, SeekStep step,
                               int workers);

// Called before a run's first step. If `data` has image files and `choice`
// (LoaderOptions::seek_index) has no complete index file, makes one, with a place per row of MCUs,
// on all cores. `say`: prints the result. Returns the signal that stopped it, or 0. Throws
// std::invalid_argument if there is no path to write it to.
int make_missing_seek_indexes(const DataOptions& data, const std::string& choice, bool say);

}  // namespace stoker
