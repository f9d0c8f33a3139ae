// A prefix of a store as the location of blobs. Threads: const calls from any. Errors: StoreError,
// and std::invalid_argument for an address that is none.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/source/blob/blob_location.h"
#include "pipeline/source/blob/object_states.h"
#include "pipeline/store/object_reader.h"
#include "staging/mutex.h"

namespace stoker {

class StoredLocation final : public BlobLocation,
                             public std::enable_shared_from_this<StoredLocation> {
 public:
  StoredLocation(const StoreAddress& folder, const StoreOptions& options);
  ~StoredLocation() override;  // in a process that was forked meanwhile it frees nothing

  const std::string& root() const override { return root_; }
  BlobListing list(const std::string& folder) const override;
  bool has_file(const std::string& folder,
                const std::function<bool(const std::string& name)>& wanted) const override;
  std::vector<std::string> missing(const std::vector<std::string>& names) const override;
  std::vector<FileStamp> stamps(const std::vector<std::string>& names) const override;
  int64_t bytes_of(const std::string& name) const override;
  std::unique_ptr<BlobReader> open(const std::string& name) const override;
  ReadAt read_at(const std::string& name) const override;
  void cancel() const override { cancelled_ = true; }
  int scans_at_once() const override;
  std::string identity() const override { return root_ + store_->digest_of_queries(); }
  std::unique_ptr<Source> make_source(std::unique_ptr<BlobIndex> index) const override;

  // Returns the object with a name, as it was when this location saw it first: a location sees one
  // version of each object. Its key is in the store, not relative to the root. Throws if it is not
  // there.
  StoredObject object(const std::string& name) const;
  // Calls `found` with every object whose name begins with `prefix`, in the server's order.
  // `found` returns false to stop.
  void each_object(
      const std::string& prefix,
      const std::function<bool(std::string_view name, const StoredObject&)>& found) const;
  std::string key_of(const std::string& name) const { return prefix_ + name; }
  const std::shared_ptr<const ObjectStore>& store() const { return store_; }

 private:
  // Returns the name of the object that a list names by a path relative to its own folder. Throws
  // for what is not below that folder.
  std::string name_of_listed(const std::string& path) const;
  // The objects of the samples of a list. Throws if one is not there.
  ObjectStates files_of(const BlobIndex& index) const;
  // Looks up many objects, with a list where the store has one.
  std::vector<StoredObject> look_up_many(const std::vector<std::string>& names) const;
  // Looks objects up, many at a time; an object without bytes (-1) is not there.
  std::vector<StoredObject> look_up(const std::vector<std::string>& names) const;

  const std::shared_ptr<const ObjectStore> store_;
  const std::string prefix_;  // of keys: "", or with a "/" at its end
  const std::string root_;
  const StoreAddress::Kind kind_;
  const StoreOptions options_;
  const pid_t process_;
  std::unique_ptr<ObjectReader> reader_;
  mutable std::atomic<bool> cancelled_ = false;
  mutable Mutex mutex_;
  mutable std::map<std::string, StoredObject> seen_ GUARDED_BY(mutex_);  // by name
};

// `targets`: by the objects' addresses, all below this one.
std::shared_ptr<const StoredLocation> stored_location(const std::string& address,
                                                      const StoreOptions& options,
                                                      const ObjectTargets& targets = {});

// Returns the addresses of the objects that a glob (fnmatch(3) with FNM_PATHNAME) stands for,
// sorted.
std::vector<std::string> stored_matches(const std::string& pattern, const StoreOptions& options);

// Returns the stamp of an object: its size, and a digest of its version. A digest is always less
// than a time of this century in nanoseconds, so that it counts as settled.
FileStamp stamp_of(const StoredObject& object);
// Returns whether it is the stamp of an object whose server gives no versions: it may change
// without another stamp.
bool is_unversioned(const FileStamp& stamp);
// Returns the stamp of a sample, but an unknown one for an object of a server that gives no
// versions, whose bytes may change without it. Threads: any.
FileStamp version_stamp(const Source& source, SampleId id);

}  // namespace stoker
