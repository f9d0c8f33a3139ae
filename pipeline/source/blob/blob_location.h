// Where the blobs of a data set are: a folder of this machine (local_location.cc), or a prefix in a
// store (stored_location.h). Names are relative to its root, with "/" between folders. Owner:
// shared. Threads: const calls from any. Errors: std::runtime_error with the path and the reason
// (of a store: StoreError).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/source/blob/blob_index.h"
#include "pipeline/source/format/blob_reader.h"

namespace stoker {

// The names of the files and folders in a folder that are not hidden, each sorted.
struct BlobListing {
  std::vector<std::string> files, folders;
};

class BlobLocation {
 public:
  virtual ~BlobLocation() = default;
  virtual const std::string& root() const = 0;  // a folder's path, or "s3://bucket/prefix"
  // For messages, and for what opens local files: the root, "/" and the name; "": the root.
  std::string path_of(const std::string& name) const;
  // `folder` is a name; "" is the root.
  virtual BlobListing list(const std::string& folder) const = 0;
  // Returns true if a file directly in `folder` has a name that is wanted.
  virtual bool has_file(const std::string& folder,
                        const std::function<bool(const std::string& name)>& wanted) const = 0;
  // Returns those of the files that are not there.
  virtual std::vector<std::string> missing(const std::vector<std::string>& names) const = 0;
  // Returns the state of each file. Throws if one is not there.
  virtual std::vector<FileStamp> stamps(const std::vector<std::string>& names) const = 0;
  FileStamp stamp(const std::string& name) const { return stamps({name}).front(); }
  // Returns how many bytes a file has; -1 if there is no such file.
  virtual int64_t bytes_of(const std::string& name) const = 0;
  virtual std::unique_ptr<BlobReader> open(const std::string& name) const = 0;
  // Reads a blob that is no local file; empty for one.
  virtual ReadAt read_at([[maybe_unused]] const std::string& name) const { return {}; }
  // Ends reads that wait for a network, by an exception; there will be no others.
  virtual void cancel() const {}
  std::string read_whole(const std::string& name) const;
  // How many blobs to scan at once for their samples: the scans wait for storage most of the time.
  virtual int scans_at_once() const = 0;
  // Tells this location from others in the key of an index: the same for all ways to write a path.
  virtual std::string identity() const = 0;
  // Returns the source of the samples that an index of blobs at this location has.
  virtual std::unique_ptr<Source> make_source(std::unique_ptr<BlobIndex> index) const = 0;
};

// A folder of this machine as the location of blobs. Errors and threads: as BlobLocation.
std::shared_ptr<const BlobLocation> local_location(const std::string& root);

}  // namespace stoker
