// Shared by image folders of this machine and of a store: labels, names and notes, from
// the list of their files. Threads: const calls from any.
#pragma once

#include <string>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/source/folder_index.h"

namespace stoker {

class IndexedFolder : public Source, protected SampleStorage {
 public:
  // `texts`: extensions of files beside the images, each a target that varies.
  IndexedFolder(const std::string& root, FolderIndex index,
                const std::vector<std::string>& texts = {});

  const SourceInfo& info() const override { return info_; }
  int label(SampleId id) const override { return static_cast<int>(index_.folder_of(id).label); }
  std::string name(SampleId id) const override;
  uint64_t labels_digest() const override { return labels_digest_; }
  const SampleStorage& storage() const override { return *this; }

 protected:
  const FolderIndex& index() const { return index_; }

 private:
  const FolderIndex index_;
  const uint64_t labels_digest_;
  const SourceInfo info_;  // class names are valid UTF-8
};

}  // namespace stoker
