// Which blobs (files that hold many samples) a path names, and of what format they are. Values and
// functions; threads: any. Errors: std::runtime_error with the path and what was found there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/source/blob/blob_location.h"
#include "pipeline/source/format/formats.h"
#include "pipeline/store/store_options.h"

namespace stoker {

struct BlobSet {
  BlobFormat format = BlobFormat::tar;
  std::shared_ptr<const BlobLocation> location;
  std::vector<std::string> blobs;  // relative to the location, in the order of the samples: by name
  const std::string& root() const { return location->root(); }
};

// Returns the blobs at `path`: a file; a glob or braces, if there is no such file; or a folder that
// has blobs, in itself, in the folders of its parts (train; test, val, validation) or in its folder
// `data`. Returns nullopt for a folder without blobs, or with class folders beside them.
//
// `path` may be an address in a store ("s3://bucket/prefix"): a name with the ending of a format is
// an object, another one a folder; a glob is matched against a list of the objects.
//
// With train or test, only blobs of that part are taken, if the folders or the first words of the
// files' names (train-00001.tar) distinguish parts.
std::optional<BlobSet> find_blobs(const std::string& path, Split split,
                                  const StoreOptions& options = {});

// The same for paths of files that are given one by one; their order is kept. Blobs have no query
// in their names; of several that differ in it alone all but the first get a number, as "a.tar~2".
BlobSet blob_set_of(const std::vector<std::string>& given, const StoreOptions& options = {});

// Returns the endings of shards, or of lists, for people: ".tar as WebDataset has them, .parquet,
// ...".
std::string shard_files();
std::string list_files();

// Returns true if an address in a store names objects, by a format's ending, a glob or braces, and
// no folder.
bool names_objects(const std::string& address);

// Returns true if the folder, glob or file at `path` has blobs of several parts.
bool has_blob_parts(const std::string& path, const StoreOptions& options = {});

}  // namespace stoker
