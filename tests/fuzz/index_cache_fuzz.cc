// The cached list of an image folder. Its seal is corrected first (it guards against accidents,
// not against forgery): what load_index() accepts then must be safe to use.
#include <cstdlib>
#include <string>

#include "pipeline/source/folder_index.h"
#include "tests/support/sealed_again.h"
#include "tests/support/temp_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  static const TempFolder folder;
  const std::string path =
      folder.write("index", sealed_again({reinterpret_cast<const char*>(data), size}));
  FolderIndex index;
  if (!load_index(path, {"/", {""}, {""}}, index)) return 0;
  for (SampleId id = 0; id < index.size(); ++id) {
    const int64_t label = index.folder_of(id).label;
    if (label < 0 || label >= static_cast<int64_t>(index.class_names.size())) std::abort();
    if (index.folder_path(id).size() >= index.text.size()) std::abort();
    if (index.file_name(id).size() >= index.text.size()) std::abort();  // may be the same text
  }
  index.fingerprint();
  return 0;
}
