#include "pipeline/source/annotated/kept_set.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/files/file_time.h"
#include "staging/error_text.h"

namespace stoker {
namespace {

struct KeptPlace {
  std::string file;  // in the cache directory
  std::string key;   // the annotated file, and its state
  bool may_keep = false;
};

KeptPlace kept_place(const std::string& path, const std::string& cache_dir) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) throw std::runtime_error(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw std::runtime_error("not a regular file");
  const std::string full = std::filesystem::canonical(path).string();
  KeptPlace place;
  place.file = cache_dir + "/annotations-" + hex64(text_digest(full)) + ".bin";
  place.key = full;
  const int64_t modified_ns = nanoseconds_of(status.st_mtim);
  for (const int64_t number : {int64_t{status.st_size}, modified_ns, nanoseconds_of(status.st_ctim),
                               static_cast<int64_t>(status.st_ino)}) {
    place.key.append("\n").append(std::to_string(number));
  }
  place.may_keep = !cache_dir.empty() && modified_ns <= system_now_ns() - kSettleNs;
  return place;
}

}  // namespace

SharedAnnotations keep_set(const std::string& path, const std::string& cache_dir,
                           const std::function<AnnotationSetBuilder()>& make) {
  try {
    const KeptPlace place = kept_place(path, cache_dir);
    if (!cache_dir.empty()) {
      if (SharedAnnotations kept = open_annotation_set(place.file, place.key)) return kept;
    }
    AnnotationSetBuilder builder = make();
    return place.may_keep ? builder.finish_in(place.file, place.key) : builder.finish();
  } catch (const std::exception& error) {
    throw std::runtime_error(path + ": " + error_text(error));
  }
}

}  // namespace stoker
