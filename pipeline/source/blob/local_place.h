// A folder of this machine as the place of blobs. Errors and threads: as BlobPlace.
#pragma once

#include <memory>
#include <string>

#include "pipeline/source/blob/blob_place.h"

namespace stoker {

std::shared_ptr<const BlobPlace> local_place(const std::string& root);

}  // namespace stoker
