// A source of samples in blobs: shards (tar, Parquet, TFRecord, MDS), or a list of files. Its
// samples are those of the blobs in their order. A sample is named "SHARD/NAME" in a tar shard,
// "SHARD#ROW" in the others, and by its path as the list has it. Classes that are text are sorted
// byte by byte; numbers are labels as they are, with the class names that are stored beside them
// ("classes.txt" beside the shards, a name per line; the features of a Parquet file) or else the
// numbers themselves; without labels, every label is 0 and there are no class names.
//
// A sample is read with pread(2), never through a mapping, and only while its blob has the size and
// time that it had when its samples were listed: a blob that was changed, cut short or replaced
// makes bad samples, never wrong pixels. Descriptors of blobs stay open, up to half of what the
// process may open.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/source/blob/blob_set.h"

namespace stoker {

// Makes the index, or takes the one in the cache directory if none of the blobs has changed since.
// Indexes of few samples in local files are not kept. Processes that open the same data at once
// make one index. Throws as open_source().
std::unique_ptr<Source> make_blob_source(const BlobSet& set, const SourceOptions& options);
// The same, but a set of tars in a store is a GrowingSource, which does not wait for their index.
// options.go_on is called on another thread then. Nothing is fed before the index is complete where
// labels are texts, or there is a cache of the samples.
std::unique_ptr<Source> begin_blob_source(const BlobSet& set, const SourceOptions& options);
// Returns the name of each format, and the words for its files in sentences: "tar", "tar shards".
std::vector<std::pair<std::string, std::string>> format_words();

}  // namespace stoker
