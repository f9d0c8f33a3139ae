// Which folders of an image folder to list, from what is directly in it; and what is wrong with a
// list. For folders of this machine and of a store. Errors: std::runtime_error with the path and
// what is there.
#pragma once

#include <string>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/source/folder_index.h"

namespace stoker {

// The entries of a folder.
struct FolderContent {
  std::string path;                  // for messages
  std::string own_name;              // the folder's own, which may say what part it is
  std::vector<std::string> folders;  // that are not hidden, sorted
  std::vector<std::string> names;    // of everything
};

FolderQuery folder_query(const FolderContent& content, Split split);
// Returns the folder of the part that the split chooses, for folders without classes.
std::string folder_of_part(const std::string& folder, Split split);
// Throws if there are no class folders, or no images in them.
void check_index(const FolderContent& content, const FolderIndex& index);

}  // namespace stoker
