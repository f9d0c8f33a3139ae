// Finds the further pictures of samples where data are opened: what SourceOptions::pictures_from
// names. Functions; threads: any. Errors: InvalidField of `pictures_from` for what cannot be meant;
// std::runtime_error with the names for what is wrong with the pictures.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/source/pictures_source.h"

namespace stoker {

// "control=control.png" of SourceOptions::pictures_from.
struct PictureField {
  std::string name, field;
};
std::vector<PictureField> picture_fields(const SourceOptions& options);

// Gives each sample the picture with the same key, and notes what has no counterpart. `key_of`: of
// a name.
using PictureKey = std::function<std::string(const std::string& name)>;
NamedPictures pair_by_key(const Source& samples, const std::string& name,
                          std::shared_ptr<const Source> pictures, const PictureKey& key_of,
                          std::vector<SourceNote>& notes);

// The samples are the pictures in `folder` and in the folders in it, with those of the other
// folders. They have label 0.
std::unique_ptr<Source> open_picture_folders(const std::string& folder,
                                             const SourceOptions& options);

}  // namespace stoker
