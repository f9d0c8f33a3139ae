// An image folder: root/<class>/**/<file>, as torchvision's ImageFolder. Classes are the folders,
// sorted byte by byte; the samples are sorted by class, then by their folder's path, then by file
// name: the same list in the same order as torchvision's.
//
// Files: .jpg .jpeg .png .bmp .webp .tif .tiff .ppm .pgm, in upper or lower case. Names that begin
// with a dot are skipped (files and folders). Symbolic links are followed; a link to one of its own
// parent folders is not entered again. Source::notes() counts and names all other files that are
// left out, and those that a link gives a second label. A class folder without images stays a
// class, so that labels are the same for every split. A broken link is listed, and is a bad sample
// when it is read.
//
// The list is kept as one block of text and offsets (about 30 bytes a file) and cached on disk;
// see folder_index.h. name() escapes a backslash, control characters and bytes that are not UTF-8
// as \xNN.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/files/cache_folder.h"
#include "pipeline/source.h"
#include "pipeline/source/folder_index.h"

namespace stoker {

struct FolderOptions {
  // train: the folder "train"; test: "test", "val" or "validation" (the first that exists); all:
  // both. If none of these exists, the classes are in the root itself: that is train and all, and
  // test only if the root itself is called test, val or validation.
  Split split = Split::all;
  std::string cache_dir = default_cache_folder();  // "" = no cache
  // Shorter lists are not cached: listing them again takes milliseconds.
  int64_t min_files_to_cache = 10'000;
  // Extensions of text files beside the images ("txt": cat/1.txt of cat/1.jpg), each a target of
  // texts, which are read with the samples: they are no part of a digest.
  std::vector<std::string> texts{};
};

// Throws std::runtime_error with the path: no such folder, no class folders (with what is there),
// no images, or a folder that cannot be read.
std::unique_ptr<Source> make_folder_source(const std::string& path,
                                           const FolderOptions& options = {});

}  // namespace stoker
