// Makes the index of a data set in blobs: reads every blob once, several at a time, and writes the
// samples in the order of the blobs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/source/blob/blob_index.h"
#include "pipeline/source/blob/blob_set.h"
#include "pipeline/source/format/sample_sink.h"

namespace stoker {

// Who may use the first samples of an index while the others are looked for. Threads: one call at a
// time. An exception ends the making of the index.
class IndexParts {
 public:
  virtual ~IndexParts() = default;
  // Returns whether an index of the first `samples` is wanted, which are all that are known.
  virtual bool wants(int64_t samples) = 0;
  // Returns where to write it, and then gets it.
  virtual std::string new_path() = 0;
  virtual void take(const std::string& path) = 0;
  // There are no such indexes, because labels that are texts have no numbers before all are known.
  virtual void none() = 0;
};

struct BlobIndexRequest {
  BlobSet set;
  FieldChoice fields;
  std::vector<std::string> class_names;  // of classes 0, 1, ..., where a file beside them has them
  // As SourceOptions::go_on.
  std::function<bool(int64_t done, int64_t total)> go_on;
  IndexParts* parts = nullptr;
};

// Returns the state of a set's blobs. Throws std::runtime_error if one is not there.
std::vector<FileStamp> stamps_of(const BlobSet& set);

// Writes the index to `path`. Labels that are text become classes in the order of the texts (byte
// by byte). `stamps` were taken before; `key` goes into the table. Throws std::runtime_error (a
// BlobError for content) with path and offset: a label that is negative or has no class name, texts
// beside numbers, a target of another shape than the first sample's, a blob that changes meanwhile,
// no samples at all; or if go_on() returned false.
void build_index(const BlobIndexRequest& request, const std::vector<FileStamp>& stamps,
                 const std::string& key, const std::string& path);

}  // namespace stoker
