// Opens annotations, and puts them on the pictures of a folder or of a source: what
// SourceOptions::objects names. Pictures without annotations and annotations without a picture are
// left out, with a note. Functions; threads: any. Errors: InvalidField of `objects` for what is
// wrong with the annotations; std::runtime_error with the path for what is wrong with the pictures.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pipeline/source.h"

namespace stoker {

// The samples are the pictures in `folder` and in the folders in it, in the order of the
// annotations. They have label 0.
std::unique_ptr<Source> annotate_folder(const std::string& folder, const SourceOptions& options);
// The samples are those of the source that `open` opens with the other options, in its order; no
// label is asked for unless label_from is given. `data`: its path, for messages.
std::unique_ptr<Source> annotate_source(
    const std::function<std::unique_ptr<Source>(const SourceOptions&)>& open,
    const std::string& data, const SourceOptions& options);

}  // namespace stoker
