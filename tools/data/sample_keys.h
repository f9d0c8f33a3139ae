// The keys under which samples stand in tar shards, made from their names: "n01/abc.jpg" has the
// key "n01/abc". Owner: the command; the source outlives it. Threads: any. Memory: 8 bytes per
// sample.
//
// WebDataset groups files by their names up to the first dot after the last slash, so a key has no
// dot there: "a.b.jpg" becomes "a_b". Keys that several samples would have, in whichever shard, get
// the sample's id: "a.jpg" and "a.png" become "a-0" and "a-1". The part of a path that is empty,
// "." or ".." becomes "_", so that nothing is unpacked outside of a folder. A part that begins
// with two underscores, which readers take for metadata and leave out, gets an x before it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/source.h"

namespace stoker {

class SampleKeys {
 public:
  explicit SampleKeys(const Source& source);
  std::string key(SampleId id) const;

 private:
  bool is_taken(const std::string& key) const;

  const Source& source_;
  std::vector<uint64_t> digests_;  // of all keys before ids are added, sorted
};

}  // namespace stoker
