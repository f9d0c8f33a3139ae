// A folder of this machine as the location of blobs. Errors and threads: as BlobLocation.
#pragma once

#include <memory>
#include <string>

#include "pipeline/source/blob/blob_location.h"

namespace stoker {

std::shared_ptr<const BlobLocation> local_location(const std::string& root);

}  // namespace stoker
