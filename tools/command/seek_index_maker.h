// Makes a data set's seek indexes with a bar that shows how far it is: `stoker index`, and
// `stoker train --build-seek-index`. Owner: the command. Threads: one; Ctrl-C and SIGTERM end it in
// good order. Errors: as build_seek_indexes().
#pragma once

#include <optional>
#include <string>

#include "pipeline/seek_index/build.h"

namespace stoker {

struct SeekIndexRun {
  std::optional<SeekIndexTotals> totals;  // nullopt: stopped, and nothing was written
  int signal = 0;                         // that stopped it
  double seconds = 0;
};

SeekIndexRun make_seek_indexes(const Source& source, const std::string& path, SeekStep step,
                               int workers);

// Before a run's first step: where `choice` (LoaderOptions::seek_index) has no whole file of
// indexes of `data`, which are image files, it is made, a place per row of MCUs, on all cores;
// `say`: what came out is printed. Returns the signal that stopped it, or 0. Throws
// std::invalid_argument where there is no place for it.
int make_missing_seek_indexes(const std::string& data, const std::string& choice, bool say);

}  // namespace stoker
