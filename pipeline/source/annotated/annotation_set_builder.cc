#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "pipeline/files/digest.h"
#include "pipeline/files/printable_name.h"
#include "pipeline/source/annotated/annotation_set.h"
#include "pipeline/source/annotated/annotation_table.h"
#include "pipeline/source/annotated/picture_code.h"

namespace stoker {

struct AnnotationSetBuilder::Impl {
  AnnotationTable table;
  std::string pieces, names, piece;
  std::vector<PictureEntry> entries;
  std::vector<uint32_t> slots = std::vector<uint32_t>(16);

  std::string_view name(const PictureEntry& entry) const {
    return std::string_view(names).substr(entry.name_at, entry.name_bytes);
  }

  // Returns the slot of the picture of this name, or an empty one for it.
  uint32_t& slot_of(std::string_view wanted) {
    for (uint64_t i = text_digest(wanted);; ++i) {
      uint32_t& slot = slots[i & (slots.size() - 1)];
      if (slot == 0 || name(entries[slot - 1]) == wanted) return slot;
    }
  }

  void grow_slots() {
    slots.assign(2 * slots.size(), 0);
    for (size_t i = 0; i < entries.size(); ++i) {
      slot_of(name(entries[i])) = static_cast<uint32_t>(i) + 1;
    }
  }

  void write_piece(const PictureAnnotations& picture) {
    piece.clear();
    append_picture(table.info, picture, piece);
    if (piece.size() > std::numeric_limits<uint32_t>::max()) {
      throw std::runtime_error(printable_name(std::string(picture.name)) +
                               ": more than 4 GiB of annotations");
    }
  }

  // Returns pictures, names and slots in one row of bytes, and completes the table.
  std::string finish_index() {
    std::string index;
    const auto add = [&index](const void* data, size_t bytes) {
      index.append(static_cast<const char*>(data), bytes);
    };
    add(entries.data(), entries.size() * sizeof(PictureEntry));
    add(names.data(), names.size());
    add(slots.data(), slots.size() * sizeof(uint32_t));
    table.pictures = entries.size();
    table.piece_bytes = pieces.size();
    table.name_bytes = names.size();
    table.slots = slots.size();
    table.index_seal = text_digest(index);
    AnnotationTable known = table;
    known.key.clear();
    known.label_root.clear();
    known.info.digest = 0;
    const std::vector<char> bytes = bytes_of_table(known);
    table.info.digest = text_digest({bytes.data(), bytes.size()});
    return index;
  }
};

AnnotationSetBuilder::AnnotationSetBuilder(AnnotationInfo info, std::string label_root)
    : impl_(std::make_unique<Impl>()) {
  for (const auto* names : {&info.class_names, &info.keypoint_names}) {
    for (const std::string& name : *names) {
      if (name.find('\0') == std::string::npos) continue;
      throw std::runtime_error("the name " + printable_name(name) + " has a NUL");
    }
  }
  impl_->table.info = std::move(info);
  impl_->table.label_root = std::move(label_root);
}

AnnotationSetBuilder::AnnotationSetBuilder(AnnotationSetBuilder&&) noexcept = default;
AnnotationSetBuilder::~AnnotationSetBuilder() = default;

void AnnotationSetBuilder::add(const PictureAnnotations& picture) {
  Impl& set = *impl_;
  if (set.entries.size() + 1 >= kMostPictures) throw std::runtime_error("too many pictures");
  if (2 * set.entries.size() >= set.slots.size()) set.grow_slots();
  uint32_t& slot = set.slot_of(picture.name);
  if (slot != 0) {
    throw std::runtime_error("two pictures have the name " +
                             printable_name(std::string(picture.name)));
  }
  set.write_piece(picture);
  slot = static_cast<uint32_t>(set.entries.size()) + 1;
  set.entries.push_back({.piece_at = set.pieces.size(),
                         .piece_seal = text_digest(set.piece),
                         .name_at = set.names.size(),
                         .piece_bytes = static_cast<uint32_t>(set.piece.size()),
                         .name_bytes = static_cast<uint32_t>(picture.name.size())});
  set.pieces += set.piece;
  set.names += picture.name;
}

SharedAnnotations AnnotationSetBuilder::finish() {
  const std::string index = impl_->finish_index();
  const auto bytes = std::make_shared<const std::string>(std::move(impl_->pieces) + index);
  AnnotationTable table = std::move(impl_->table);
  impl_ = std::make_unique<Impl>();
  return make_annotation_set(std::move(table), *bytes, bytes);
}

SharedAnnotations AnnotationSetBuilder::finish_in(const std::string& path, const std::string& key) {
  impl_->table.key = key;
  try {
    const std::string index = impl_->finish_index();
    SealedWriter file(path, kAnnotationSetKind);
    file.append(impl_->pieces.data(), impl_->pieces.size());
    file.append(index.data(), index.size());
    const std::vector<char> table = bytes_of_table(impl_->table);
    file.finish(impl_->entries.size(), {table.data(), table.size()});
  } catch (const std::runtime_error&) {
    return finish();
  }
  SharedAnnotations kept = open_annotation_set(path, key);
  if (kept == nullptr) return finish();
  impl_ = std::make_unique<Impl>();
  return kept;
}

}  // namespace stoker
