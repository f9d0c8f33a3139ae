#include "pipeline/store/object_store.h"

#include <algorithm>
#include <utility>

#include "pipeline/files/printable_name.h"
#include "pipeline/store/http_store.h"
#include "pipeline/store/s3/s3_store.h"

namespace stoker {

std::string ObjectStore::address_of(const std::string& key) const {
  const bool apart = key.compare(0, 1, "/") != 0 || root().compare(0, 5, "s3://") == 0;
  return root() + (apart ? "/" : "") + printable_name(key);
}

void ObjectStore::list(const std::string& prefix,
                       const std::function<bool(StoredObject object)>& found) const {
  std::vector<StoredObject> all;
  scan(prefix, [&all](StoredObject object) {
    all.push_back(std::move(object));
    return true;
  });
  sort_by_key(all);
  for (StoredObject& object : all) {
    if (!found(std::move(object))) return;
  }
}

void sort_by_key(std::vector<StoredObject>& objects) {
  const auto before = [](const StoredObject& a, const StoredObject& b) { return a.key < b.key; };
  if (!std::is_sorted(objects.begin(), objects.end(), before)) {
    std::sort(objects.begin(), objects.end(), before);
  }
}

std::shared_ptr<const ObjectStore> open_store(const StoreAddress& address,
                                              const StoreOptions& options) {
  if (address.kind == StoreAddress::Kind::s3) {
    return std::make_shared<S3Store>(address.server, options);
  }
  return std::make_shared<HttpStore>(address, options);
}

}  // namespace stoker
