#include "pipeline/source/stored_folder.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "pipeline/files/file_buffer.h"
#include "pipeline/files/parallel.h"
#include "pipeline/source/blob/object_states.h"
#include "pipeline/source/blob/sample_window.h"
#include "pipeline/source/folder_query.h"
#include "pipeline/source/format/known_names.h"
#include "pipeline/source/indexed_folder.h"

namespace stoker {
namespace {

class StoredFolder final : public IndexedFolder {
 public:
  StoredFolder(std::shared_ptr<const StoredLocation> location, FolderIndex index,
               ObjectStates states, const StoreOptions& options)
      : IndexedFolder(location->root(), std::move(index)),
        location_(std::move(location)),
        states_(std::move(states)),
        window_(location_->store(), options,
                {.root = location_->root(),
                 .queries = location_->store()->digest_of_queries(),
                 .count = size(),
                 .locate = [this](SampleId id) { return locate(id); },
                 .bytes_of = [this](SampleId id) { return states_.bytes(id); }}) {}

  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    read(id, MayWait::yes, buffer, bytes);
    return {};  // what is wrong with an object was thrown
  }
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override {
    return read(id, MayWait::no, buffer, bytes);
  }
  FileStamp stamp(SampleId id) const override { return stamp_of(object(id)); }
  bool read_pieces(SampleId id, const FileStamp& wanted, std::span<const BytePiece> pieces,
                   MayWait may_wait) const override {
    return wanted.is_known() && stamp(id) == wanted && window_.read_pieces(id, may_wait, pieces);
  }
  std::unique_ptr<LookAhead> look_ahead(SampleSequence next) const override {
    return window_.look_ahead(std::move(next));
  }
  void will_not_read(SampleId id) const override { window_.skip(id); }
  int64_t look_ahead_bytes() const override { return window_.bytes(); }
  std::optional<StoreStats> store_stats() const override { return window_.stats(); }
  std::optional<StoredBytes> stored_bytes() const override { return window_.stored_bytes(); }

 private:
  StoredObject object(SampleId id) const {
    return states_.object(id, location_->key_of(std::string(index().folder_path(id)) + "/" +
                                                std::string(index().file_name(id))));
  }
  SampleAddress locate(SampleId id) const {
    auto found = std::make_shared<const StoredObject>(object(id));
    const int64_t bytes = found->bytes;
    return {std::move(found), 0, bytes};
  }
  bool read(SampleId id, MayWait may_wait, std::vector<uint8_t>& buffer,
            std::span<const uint8_t>& bytes) const {
    return window_.read(id, may_wait, [&](std::span<const uint8_t> stored) {
      grow_file_buffer(buffer, stored.size());
      std::ranges::copy(stored, buffer.begin());
      bytes = {buffer.data(), stored.size()};
      return true;
    });
  }

  const std::shared_ptr<const StoredLocation> location_;
  const ObjectStates states_;
  mutable SampleWindow window_;  // what it holds changes no sample
};

// ---- Listing

struct ListedObject {
  std::string folder, name;  // relative to the root
  StoredObject object;       // without its key
};

bool is_hidden(std::string_view path) {
  return path.starts_with('.') || path.find("/.") != std::string_view::npos;
}

// A class folder in one of the parts.
struct ClassFolder {
  std::string path;  // relative to the root
  int64_t label = 0;
  std::vector<ListedObject> objects{};
  FolderRemarks left_out{};

  void list(const StoredLocation& location) {
    location.each_object(path + "/", [this](std::string_view name, const StoredObject& object) {
      const size_t slash = name.rfind('/');
      if (name.ends_with('/') || is_hidden(name)) return true;
      if (!is_image_extension(extension_of(name))) {
        add_remark({extension_of(name), 1, std::string(name), ""}, left_out);
        return true;
      }
      objects.push_back({std::string(name.substr(0, slash)),
                         std::string(name.substr(slash + 1)),
                         {"", object.bytes, object.version}});
      return true;
    });
    std::sort(objects.begin(), objects.end(), [](const ListedObject& a, const ListedObject& b) {
      return std::tie(a.folder, a.name) < std::tie(b.folder, b.name);
    });
  }
};

std::vector<ClassFolder> plan_folders(const StoredLocation& location, const FolderQuery& query,
                                      FolderIndex& index) {
  std::set<std::string> class_names;
  std::vector<ClassFolder> folders;
  FolderRemarks beside;
  for (const std::string& part : query.class_parts) {
    const BlobListing listing = location.list(part);
    const std::string prefix = part.empty() ? "" : part + "/";
    const bool is_listed = std::ranges::find(query.parts, part) != query.parts.end();
    for (const std::string& file : listing.files) {
      const std::string extension = extension_of(file);
      if (is_image_extension(extension)) add_remark({extension, 1, prefix + file, ""}, beside);
    }
    class_names.insert(listing.folders.begin(), listing.folders.end());
    for (const std::string& folder : listing.folders) {
      if (is_listed) folders.push_back({prefix + folder});
    }
  }
  for (ClassFolder& folder : folders) {
    const std::string name = folder.path.substr(folder.path.rfind('/') + 1);
    folder.label = std::distance(class_names.begin(), class_names.find(name));
  }
  std::sort(folders.begin(), folders.end(), [](const ClassFolder& a, const ClassFolder& b) {
    return std::tie(a.label, a.path) < std::tie(b.label, b.path);
  });
  index.beside = remarks_of(beside);
  index.class_names.assign(class_names.begin(), class_names.end());
  return folders;
}

uint64_t append_text(const std::string& text, FolderIndex& index) {
  const uint64_t at = index.text.size();
  index.text.insert(index.text.end(), text.c_str(), text.c_str() + text.size() + 1);
  return at;
}

void append_folder(const ClassFolder& folder, FolderIndex& index, ObjectStates& states) {
  const std::string* last = nullptr;
  for (const ListedObject& listed : folder.objects) {
    if (last == nullptr || *last != listed.folder) {
      index.folders.push_back({append_text(listed.folder, index), index.size(), folder.label});
    }
    last = &listed.folder;
    index.names.push_back(append_text(listed.name, index));
    states.add(listed.object);
  }
}

}  // namespace

std::unique_ptr<Source> make_stored_folder(std::shared_ptr<const StoredLocation> location,
                                           const SourceOptions& options) {
  const BlobListing listing = location->list("");
  FolderContent content{location->root(),
                        std::filesystem::path(location->root()).filename().string(),
                        listing.folders, listing.files};
  content.names.insert(content.names.end(), listing.folders.begin(), listing.folders.end());
  FolderIndex index;
  std::vector<ClassFolder> folders =
      plan_folders(*location, folder_query(content, options.split), index);
  const auto count = static_cast<int64_t>(folders.size());
  for_each_parallel(
      count, static_cast<int>(std::min<int64_t>(count, location->scans_at_once())),
      [] { return 0; }, [&](int, int64_t i) { folders[static_cast<size_t>(i)].list(*location); });
  ObjectStates states;
  FolderRemarks left_out;
  for (ClassFolder& folder : folders) {
    append_folder(folder, index, states);
    for (const auto& [extension, remark] : folder.left_out) {
      FolderRemark& all =
          left_out.try_emplace(extension, FolderRemark{extension, 0, remark.first, ""})
              .first->second;
      all.files += remark.files;
      all.first = std::min(all.first, remark.first);
    }
    folder.objects = {};
  }
  index.left_out = remarks_of(left_out);
  check_index(content, index);
  return std::make_unique<StoredFolder>(std::move(location), std::move(index), std::move(states),
                                        options.store);
}

}  // namespace stoker
