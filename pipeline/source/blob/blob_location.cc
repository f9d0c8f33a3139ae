#include "pipeline/source/blob/blob_location.h"

namespace stoker {

std::string BlobLocation::path_of(const std::string& name) const {
  if (name.empty()) return root();
  if (name.starts_with('/')) return name;  // in a list
  return root() == "/" ? "/" + name : root() + "/" + name;
}

std::string BlobLocation::read_whole(const std::string& name) const {
  const std::unique_ptr<BlobReader> blob = open(name);
  const auto bytes = blob->read(0, blob->size(), "the whole file");
  return {bytes.begin(), bytes.end()};
}

}  // namespace stoker
