#include "pipeline/seek_index/indexes.h"

#include <cstdio>
#include <stdexcept>

namespace stoker {

SeekIndexes::SeekIndexes(const Source& source, const std::string& choice) : source_(source) {
  if (choice == "off" || source.encoding() != SampleEncoding::image_file) return;
  const bool is_named = choice != "auto";
  path_ = is_named ? choice : auto_seek_index_path(source);
  if (path_.empty()) return;
  std::string problem;
  file_ = SeekIndexFile::open(path_, problem);
  if (file_) return;
  if (is_named && problem.empty())
    throw std::runtime_error("seek index: " + path_ + ": no such file");
  if (!problem.empty()) {
    std::fprintf(stderr,
                 "stoker: the seek index %s is not used: %s; `stoker index` makes a new one\n",
                 path_.c_str(), problem.c_str());
  }
}

void SeekIndexes::read(SampleId id, std::vector<uint8_t>& buffer,
                       std::span<const uint8_t>& index) const {
  index = {};
  if (file_) file_->read(source_.name(id), buffer, index);
}

void SeekIndexes::note(SampleId id, const SeekUse& use) {
  if (use.used > 0) used_.fetch_add(use.used, std::memory_order_relaxed);
  if (use.refused == 0 || refused_.fetch_add(use.refused, std::memory_order_relaxed) > 0) return;
  std::fprintf(stderr,
               "stoker: the seek index %s does not fit %s (and maybe others), which changed since "
               "or whose entry is damaged; such files are read without it, `stoker index` makes it "
               "anew\n",
               path_.c_str(), source_.name(id).c_str());
}

}  // namespace stoker
