// Shards of MosaicML Streaming's MDS format, as version 0.13 of the package mosaicml-streaming
// writes them (streaming/base/format/mds/writer.py; docs.mosaicml.com/projects/streaming, "Dataset
// format"): the number n of samples (u32), n + 1 offsets (u32) of the samples and of their end, the
// writer's settings as JSON, the samples; integers have the low byte first. A sample is a size
// (u32) for each column whose values differ in size, then the value of each column.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/source/format/blob_reader.h"
#include "pipeline/source/format/sample_sink.h"

namespace stoker {

// Adds every sample of `blob`, one shard, without a name. A field is a column. Unless `fields` says
// otherwise, the image is the first of image, jpg, jpeg, png, img and x that holds the bytes of a
// file (encodings jpeg, png, bytes), and the label the first of label, labels, class, target and y
// that is an integer (int, int8 ... uint64, str_int) or a text that names the class (str). Targets:
// is_target_encoding() in mds_target.h. Objects: a column of JSON (json, str), or columns of arrays
// (ndarray) as object_columns() names them. Throws BlobError.
void scan_mds(BlobReader& blob, const FieldChoice& fields, SampleSink& out);

// Returns the names of the shards that an index.json with this content lists, in its order.
// `folder` is where it lies, for messages; bytes_of() says how many bytes a file there has, -1: it
// is not there. Throws std::runtime_error with a path if the index is damaged, if a shard is not
// MDS, is missing, has another number of bytes than the index says, or is there only in a
// compressed form.
std::vector<std::string> mds_shards(
    const std::string& folder, const std::string& index,
    const std::function<int64_t(const std::string& name)>& bytes_of);

}  // namespace stoker
