#include "pipeline/source/blob/stored_place.h"

#include <fnmatch.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "pipeline/digest.h"
#include "pipeline/parallel.h"
#include "pipeline/source/blob/stored_source.h"

namespace stoker {
namespace {

// Threads that wait for answers while objects are looked up or shards scanned; they do little else.
constexpr int kWaiting = 64;

std::string with_slash(const std::string& key) {
  return key.empty() || key.ends_with('/') ? key : key + "/";
}

std::string without_slash(std::string key) {
  while (key.ends_with('/')) key.pop_back();
  return key;
}

// Returns what of a pattern is a prefix of all that it stands for.
std::string fixed_part(const std::string& pattern) {
  return pattern.substr(0, pattern.find_first_of("*?[\\"));
}

}  // namespace

StoredPlace::StoredPlace(const StoreAddress& folder, const StoreOptions& options)
    : store_(open_store(folder, options)),
      prefix_(with_slash(folder.key)),
      root_(without_slash(store_->address_of(folder.key))),
      options_(options),
      reader_(std::make_unique<ObjectReader>(store_, options)) {
  reader_->set_starving(true);  // a scan waits for everything that it reads
}

BlobListing StoredPlace::list(const std::string& folder) const {
  const std::string prefix = with_slash(prefix_ + folder);
  BlobListing listing;
  for (const StoredObject& object : store_->list_folder(prefix)) {
    std::string name = object.key.substr(prefix.size());
    if (name.empty() || name.starts_with('.')) continue;
    const bool is_folder = name.ends_with('/');
    if (is_folder) name.pop_back();
    (is_folder ? listing.folders : listing.files).push_back(std::move(name));
  }
  if (listing.files.empty() && listing.folders.empty() && folder.empty()) {
    throw StoreError(root_ + ": no object's key begins with " + prefix);
  }
  std::sort(listing.files.begin(), listing.files.end());
  std::sort(listing.folders.begin(), listing.folders.end());
  return listing;
}

bool StoredPlace::has_file(const std::string& folder,
                           const std::function<bool(const std::string& name)>& wanted) const {
  const std::string prefix = with_slash(prefix_ + folder);
  bool found = false;
  store_->list(prefix, [&](const StoredObject& object) {
    const std::string name = object.key.substr(prefix.size());
    found = name.find('/') == std::string::npos && wanted(name);
    return !found;
  });
  return found;
}

std::vector<StoredObject> StoredPlace::look_up(const std::vector<std::string>& names) const {
  std::vector<StoredObject> objects(names.size());
  const auto count = static_cast<int64_t>(names.size());
  const auto one = [&](int, int64_t i) {
    const std::string& name = names[static_cast<size_t>(i)];
    StoredObject& object = objects[static_cast<size_t>(i)];
    {
      const MutexLock lock(mutex_);
      if (const auto seen = seen_.find(name); seen != seen_.end()) {
        object = seen->second;
        return;
      }
    }
    if (!store_->stat(prefix_ + name, object)) object.bytes = -1;
    const MutexLock lock(mutex_);
    if (object.bytes >= 0) object = seen_.try_emplace(name, object).first->second;
  };
  for_each_parallel(
      count, static_cast<int>(std::min<int64_t>(count, kWaiting)), [] { return 0; }, one);
  return objects;
}

std::vector<std::string> StoredPlace::missing(const std::vector<std::string>& names) const {
  const std::vector<StoredObject> objects = look_up(names);
  std::vector<std::string> missing;
  for (size_t i = 0; i < names.size(); ++i) {
    if (objects[i].bytes < 0) missing.push_back(names[i]);
  }
  return missing;
}

std::vector<FileStamp> StoredPlace::stamps(const std::vector<std::string>& names) const {
  const std::vector<StoredObject> objects = look_up(names);
  std::vector<FileStamp> stamps;
  for (size_t i = 0; i < names.size(); ++i) {
    if (objects[i].bytes < 0) throw StoreError(path_of(names[i]) + ": no such object");
    stamps.push_back(stamp_of(objects[i]));
  }
  return stamps;
}

int64_t StoredPlace::bytes_of(const std::string& name) const {
  return look_up({name}).front().bytes;
}

StoredObject StoredPlace::object(const std::string& name) const {
  StoredObject object = look_up({name}).front();
  if (object.bytes < 0) throw StoreError(path_of(name) + ": no such object");
  return object;
}

std::unique_ptr<BlobReader> StoredPlace::open(const std::string& name) const {
  const StoredObject found = object(name);
  return std::make_unique<BlobReader>(path_of(name), found.bytes,
                                      [this, found](int64_t offset, std::span<uint8_t> out) {
                                        if (!out.empty()) reader_->read_now(found, offset, out);
                                      });
}

int StoredPlace::scans_at_once() const { return kWaiting; }

std::unique_ptr<Source> StoredPlace::make_source(std::unique_ptr<BlobIndex> index) const {
  const std::vector<StoredObject> blobs = look_up(index->table().blobs);
  return std::make_unique<StoredSource>(root_, std::move(index), blobs, store_, options_);
}

void StoredPlace::each_object(
    const std::string& prefix,
    const std::function<bool(std::string_view name, const StoredObject&)>& found) const {
  store_->list(prefix_ + prefix, [&](const StoredObject& object) {
    return found(std::string_view(object.key).substr(prefix_.size()), object);
  });
}

std::shared_ptr<const StoredPlace> stored_place(const std::string& address,
                                                const StoreOptions& options) {
  return std::make_shared<StoredPlace>(parse_address(address), options);
}

std::vector<std::string> stored_matches(const std::string& pattern, const StoreOptions& options) {
  StoreAddress address = parse_address(pattern);
  const std::string wanted = std::exchange(address.key, fixed_part(address.key));
  const auto store = open_store(address, options);
  std::vector<std::string> found;
  store->list(address.key, [&](const StoredObject& object) {
    if (fnmatch(wanted.c_str(), object.key.c_str(), FNM_PATHNAME) == 0) {
      found.push_back(store->address_of(object.key));
    }
    return true;
  });
  return found;
}

FileStamp stamp_of(const StoredObject& object) {
  constexpr int kBits = 60;  // 2^60 ns are a time in 2006
  return {object.bytes, static_cast<int64_t>(text_digest(object.version) >> (64 - kBits))};
}

}  // namespace stoker
