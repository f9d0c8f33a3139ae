#include "pipeline/source/version_stamp.h"

#include "pipeline/source/blob/stored_place.h"
#include "pipeline/store/object_store.h"

namespace stoker {

FileStamp version_stamp(const Source& source, SampleId id) {
  static const int64_t unversioned = stamp_of(StoredObject{"", 0, kUnversioned}).modified_ns;
  const FileStamp stamp = source.stamp(id);
  return stamp.modified_ns == unversioned ? FileStamp{} : stamp;
}

}  // namespace stoker
