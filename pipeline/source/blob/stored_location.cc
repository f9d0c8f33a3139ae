#include "pipeline/source/blob/stored_location.h"

#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "pipeline/files/digest.h"
#include "pipeline/files/parallel.h"
#include "pipeline/source/blob/stored_source.h"
#include "pipeline/store/url_text.h"

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

StoredLocation::StoredLocation(const StoreAddress& folder, const StoreOptions& options)
    : store_(open_store(folder, options)),
      prefix_(with_slash(folder.key)),
      root_(without_slash(store_->address_of(folder.key))),
      kind_(folder.kind),
      options_(options),
      process_(getpid()),
      reader_(std::make_unique<ObjectReader>(store_, options)) {
  reader_->set_starving(true);  // a scan waits for everything that it reads
}

// The reader keeps the store, whose client has no thread there.
StoredLocation::~StoredLocation() {
  if (getpid() != process_) static_cast<void>(reader_.release());
}

BlobListing StoredLocation::list(const std::string& folder) const {
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

bool StoredLocation::has_file(const std::string& folder,
                              const std::function<bool(const std::string& name)>& wanted) const {
  const std::string prefix = with_slash(prefix_ + folder);
  bool found = false;
  store_->scan(prefix, [&](const StoredObject& object) {
    const std::string name = object.key.substr(prefix.size());
    found = name.find('/') == std::string::npos && wanted(name);
    return !found;
  });
  return found;
}

std::vector<StoredObject> StoredLocation::look_up(const std::vector<std::string>& names) const {
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

std::vector<std::string> StoredLocation::missing(const std::vector<std::string>& names) const {
  const std::vector<StoredObject> objects = look_up(names);
  std::vector<std::string> missing;
  for (size_t i = 0; i < names.size(); ++i) {
    if (objects[i].bytes < 0) missing.push_back(names[i]);
  }
  return missing;
}

std::vector<FileStamp> StoredLocation::stamps(const std::vector<std::string>& names) const {
  const std::vector<StoredObject> objects = look_up(names);
  std::vector<FileStamp> stamps;
  for (size_t i = 0; i < names.size(); ++i) {
    if (objects[i].bytes < 0) throw StoreError(path_of(names[i]) + ": no such object");
    stamps.push_back(stamp_of(objects[i]));
  }
  return stamps;
}

int64_t StoredLocation::bytes_of(const std::string& name) const {
  try {
    return look_up({name}).front().bytes;
  } catch (const StoreForbidden&) {
    // Beside files whose URLs are signed another one is forbidden, whether it is there or not; so
    // it is in public buckets without lists.
    if (kind_ == StoreAddress::Kind::http) return -1;
    throw;
  }
}

StoredObject StoredLocation::object(const std::string& name) const {
  StoredObject object = look_up({name}).front();
  if (object.bytes < 0) throw StoreError(path_of(name) + ": no such object");
  return object;
}

std::unique_ptr<BlobReader> StoredLocation::open(const std::string& name) const {
  return std::make_unique<BlobReader>(path_of(name), object(name).bytes, read_at(name));
}

ReadAt StoredLocation::read_at(const std::string& name) const {
  return [this, found = object(name)](int64_t offset, int64_t, std::span<uint8_t> out) {
    if (!out.empty()) reader_->read_now(found, offset, out, cancelled_);
    return std::ssize(out);
  };
}

int StoredLocation::scans_at_once() const { return kWaiting; }

std::unique_ptr<Source> StoredLocation::make_source(std::unique_ptr<BlobIndex> index) const {
  const std::vector<StoredObject> blobs = look_up(index->table().blobs);
  ObjectStates files = files_of(*index);
  const auto key_of_listed = [self = shared_from_this()](const std::string& path) {
    return self->key_of(self->name_of_listed(path));
  };
  return std::make_unique<StoredSource>(root_, std::move(index), blobs, std::move(files),
                                        key_of_listed, store_, options_);
}

ObjectStates StoredLocation::files_of(const BlobIndex& index) const {
  ObjectStates files;
  const BlobIndex::Found first = index.find(0);
  if (first.segment == nullptr || first.entry.storage() != BlobStorage::file) return files;
  std::vector<std::string> names;
  for (SampleId id = 0; id < index.size(); ++id) {
    const BlobIndex::Found found = index.find(id);
    names.push_back(found.segment == nullptr ? "" : name_of_listed(std::string(index.name(found))));
  }
  int64_t missing = 0;
  std::string first_missing;
  const std::vector<StoredObject> objects = look_up_many(names);
  for (size_t i = 0; i < names.size(); ++i) {
    if (objects[i].bytes < 0 && ++missing == 1) first_missing = names[i];
    files.add(objects[i]);
  }
  if (missing == 0) return files;
  throw StoreError(path_of(first_missing) + ": the list names it, and it is not there; " +
                   std::to_string(missing) + " of " + std::to_string(names.size()) +
                   " are missing");
}

std::string StoredLocation::name_of_listed(const std::string& path) const {
  const std::string name = std::filesystem::path(path).lexically_normal().generic_string();
  if (name.starts_with('/') || name == ".." || name.starts_with("../") || is_store_address(path)) {
    throw StoreError(root_ + ": its list names " + path +
                     "; a list in a store names objects below its own folder");
  }
  return kind_ == StoreAddress::Kind::http ? percent_encode(name, Slash::keep) : name;
}

std::vector<StoredObject> StoredLocation::look_up_many(
    const std::vector<std::string>& names) const {
  // A page of a list has a thousand objects, and is one request, as one that is looked up is.
  constexpr size_t kWorthAList = 1'000;
  if (names.size() < kWorthAList || kind_ == StoreAddress::Kind::http) return look_up(names);
  std::vector<size_t> order(names.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return names[a] < names[b]; });
  std::vector<StoredObject> objects(names.size());
  auto next = order.begin();
  store_->list(prefix_, [&](const StoredObject& object) {
    const std::string_view name = std::string_view(object.key).substr(prefix_.size());
    while (next != order.end() && names[*next] < name) ++next;
    for (; next != order.end() && names[*next] == name; ++next) objects[*next] = object;
    return next != order.end();
  });
  return objects;
}

void StoredLocation::each_object(
    const std::string& prefix,
    const std::function<bool(std::string_view name, const StoredObject&)>& found) const {
  store_->scan(prefix_ + prefix, [&](const StoredObject& object) {
    return found(std::string_view(object.key).substr(prefix_.size()), object);
  });
}

std::shared_ptr<const StoredLocation> stored_location(const std::string& address,
                                                      const StoreOptions& options,
                                                      const ObjectTargets& targets) {
  StoreAddress folder = parse_address(address);
  for (const auto& [object, target] : targets) {
    // As key_of() makes it of the object's name in this location.
    folder.targets[with_slash(folder.key) + object.substr(address.size() + 1)] = target;
  }
  return std::make_shared<StoredLocation>(folder, options);
}

std::vector<std::string> stored_matches(const std::string& pattern, const StoreOptions& options) {
  StoreAddress address = parse_address(pattern);
  const std::string wanted = std::exchange(address.key, fixed_part(address.key));
  const auto store = open_store(address, options);
  std::vector<std::string> found;
  store->scan(address.key, [&](const StoredObject& object) {
    if (fnmatch(wanted.c_str(), object.key.c_str(), FNM_PATHNAME) == 0) {
      found.push_back(store->address_of(object.key));
    }
    return true;
  });
  std::sort(found.begin(), found.end());
  return found;
}

FileStamp stamp_of(const StoredObject& object) {
  constexpr int kBits = 60;  // 2^60 ns are a time in 2006
  return {object.bytes, static_cast<int64_t>(text_digest(object.version) >> (64 - kBits))};
}

bool is_unversioned(const FileStamp& stamp) {
  static const int64_t unversioned = stamp_of(StoredObject{"", 0, kUnversioned}).modified_ns;
  return stamp.modified_ns == unversioned;
}

FileStamp version_stamp(const Source& source, SampleId id) {
  const FileStamp stamp = source.storage().stamp(id);
  return is_unversioned(stamp) ? FileStamp{} : stamp;
}

}  // namespace stoker
