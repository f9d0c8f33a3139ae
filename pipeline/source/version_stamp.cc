#include "pipeline/source/version_stamp.h"

#include "pipeline/source/blob/stored_location.h"

namespace stoker {

FileStamp version_stamp(const Source& source, SampleId id) {
  const FileStamp stamp = source.storage().stamp(id);
  return is_unversioned(stamp) ? FileStamp{} : stamp;
}

}  // namespace stoker
