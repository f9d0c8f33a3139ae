// What image folders of this machine and of a store have in common: labels, names and notes, from
// the list of their files. Threads: const calls from any.
#pragma once

#include <string>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/source/folder_index.h"

namespace stoker {

class IndexedFolder : public Source {
 public:
  IndexedFolder(const std::string& root, FolderIndex index);

  int64_t size() const override { return index_.size(); }
  int label(SampleId id) const override { return static_cast<int>(index_.folder_of(id).label); }
  std::string name(SampleId id) const override;
  const std::string& root() const override { return root_; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  SampleEncoding encoding() const override { return SampleEncoding::image_file; }
  Size raw_size() const override { return {}; }
  std::vector<SourceNote> notes() const override;
  uint64_t fingerprint() const override { return fingerprint_; }
  uint64_t labels_digest() const override { return labels_digest_; }

 protected:
  const FolderIndex& index() const { return index_; }

 private:
  const std::string root_;
  const FolderIndex index_;
  const uint64_t fingerprint_, labels_digest_;
  const std::vector<std::string> class_names_;  // as valid UTF-8
};

}  // namespace stoker
