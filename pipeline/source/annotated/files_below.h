// Lists the files of a folder that has a file for each picture. A function; threads: any. Errors:
// std::runtime_error with the path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker {

// Returns the files in `folder` and in the folders in it that have this extension (".xml", in any
// case of letters), relative to it and sorted. Hidden ones are passed over.
std::vector<std::string> files_below(const std::string& folder, std::string_view extension);
// Returns a path without its file's extension.
std::string_view stem_of_path(std::string_view path);

}  // namespace stoker
