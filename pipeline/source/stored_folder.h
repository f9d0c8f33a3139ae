// An image folder in a store: CLASS/**/IMAGE below a prefix, each image an object. Classes, order,
// names and labels are those of the same folder on a disk (folder_source.h). The objects are listed
// at every opening, many class folders at a time; the list needs about 100 bytes for each.
// Errors: StoreError, and what make_folder_source() throws.
#pragma once

#include <memory>

#include "pipeline/source.h"
#include "pipeline/source/blob/stored_location.h"

namespace stoker {

std::unique_ptr<Source> make_stored_folder(std::shared_ptr<const StoredLocation> location,
                                           const SourceOptions& options);

}  // namespace stoker
