#include "pipeline/source/annotated/annotation_set.h"

#include <cstring>
#include <optional>
#include <utility>

#include "pipeline/files/digest.h"
#include "pipeline/source/annotated/annotation_table.h"
#include "pipeline/source/annotated/picture_code.h"

namespace stoker {
namespace {

class FlatAnnotations final : public AnnotationSet {
 public:
  // `file`: "" if the bytes are in no file. REQUIRES: the table fits the bytes.
  FlatAnnotations(AnnotationTable table, std::string_view bytes, std::shared_ptr<const void> owner,
                  std::string file)
      : table_(std::move(table)),
        file_(std::move(file)),
        owner_(std::move(owner)),
        pieces_(bytes.substr(0, table_.piece_bytes)),
        entries_(bytes.data() + table_.piece_bytes),
        names_(entries_ + table_.pictures * sizeof(PictureEntry), table_.name_bytes),
        slots_(names_.data() + names_.size()) {}

  const AnnotationInfo& info() const override { return table_.info; }
  int64_t pictures() const override { return static_cast<int64_t>(table_.pictures); }

  std::string_view name(int64_t picture) const override {
    const PictureEntry entry = entry_of(static_cast<uint64_t>(picture));
    const bool is_inside =
        entry.name_at <= names_.size() && entry.name_bytes <= names_.size() - entry.name_at;
    return is_inside ? names_.substr(entry.name_at, entry.name_bytes) : "";
  }

  int64_t find(std::string_view wanted) const override {
    const uint64_t hash = text_digest(wanted);
    for (uint64_t i = 0; i < table_.slots; ++i) {
      uint32_t slot = 0;
      const uint64_t place = (hash + i) & (table_.slots - 1);
      std::memcpy(&slot, slots_ + place * sizeof slot, sizeof slot);
      if (slot == 0 || slot > table_.pictures) return -1;
      if (name(slot - 1) == wanted) return slot - 1;
    }
    return -1;
  }

  std::string read(int64_t picture, Annotations& out) const override {
    out.clear();
    const auto piece = piece_of(picture);
    if (!piece) return damaged();
    std::optional<std::string> problem = read_picture(table_.info, *piece, table_.label_root, out);
    return problem ? *std::move(problem) : damaged();
  }

  Size size(int64_t picture) const override {
    const auto piece = piece_of(picture);
    return piece ? read_picture_size(*piece) : Size{};
  }

 private:
  // nullopt: it is damaged.
  std::optional<std::string_view> piece_of(int64_t picture) const {
    const PictureEntry entry = entry_of(static_cast<uint64_t>(picture));
    if (entry.piece_at > pieces_.size() || entry.piece_bytes > pieces_.size() - entry.piece_at) {
      return {};
    }
    const std::string_view piece = pieces_.substr(entry.piece_at, entry.piece_bytes);
    if (!file_.empty() && text_digest(piece) != entry.piece_seal) return {};
    return piece;
  }

  PictureEntry entry_of(uint64_t picture) const {
    PictureEntry entry;
    std::memcpy(&entry, entries_ + picture * sizeof entry, sizeof entry);
    return entry;
  }

  std::string damaged() const {
    return file_.empty() ? "the annotations are damaged"
                         : "the kept annotations are damaged; delete " + file_;
  }

  const AnnotationTable table_;
  const std::string file_;
  const std::shared_ptr<const void> owner_;  // of the bytes
  const std::string_view pieces_;
  const char* const entries_;
  const std::string_view names_;
  const char* const slots_;
};

}  // namespace

SharedAnnotations make_annotation_set(AnnotationTable table, std::string_view bytes,
                                      std::shared_ptr<const void> owner) {
  return std::make_shared<FlatAnnotations>(std::move(table), bytes, std::move(owner), "");
}

SharedAnnotations open_annotation_set(const std::string& path, const std::string& key) {
  std::string problem;
  std::shared_ptr<SealedFile> file = SealedFile::open(path, kAnnotationSetKind, problem);
  AnnotationTable table;
  if (file == nullptr || !read_table(file->table(), table) || table.key != key) return nullptr;
  const std::span<const char> mapped = file->map();
  if (mapped.size() < sizeof(SealedHeader) + file->table().size()) return nullptr;
  const std::string_view bytes(mapped.data() + sizeof(SealedHeader),
                               mapped.size() - sizeof(SealedHeader) - file->table().size());
  if (!table.fits(bytes.size())) return nullptr;
  if (text_digest(bytes.substr(table.piece_bytes)) != table.index_seal) return nullptr;
  return std::make_shared<FlatAnnotations>(std::move(table), bytes, std::move(file), path);
}

}  // namespace stoker
