#include "pipeline/source/pair_pictures.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "pipeline/files/invalid_field.h"
#include "pipeline/files/printable_name.h"
#include "pipeline/source/annotated/files_below.h"
#include "pipeline/source/folder_index.h"
#include "pipeline/source/folder_query.h"
#include "pipeline/source/listed_source.h"

namespace stoker {
namespace {

bool have_same_keys(const Source& samples, const Source& pictures, const PictureKey& key_of) {
  if (samples.size() != pictures.size()) return false;
  for (SampleId id = 0; id < samples.size(); ++id) {
    if (key_of(samples.name(id)) != key_of(pictures.name(id))) return false;
  }
  return true;
}

std::unordered_map<std::string, SampleId> ids_by_key(const Source& source,
                                                     const PictureKey& key_of) {
  std::unordered_map<std::string, SampleId> ids;
  for (SampleId id = 0; id < source.size(); ++id) {
    const auto [first, is_new] = ids.emplace(key_of(source.name(id)), id);
    if (is_new) continue;
    throw std::runtime_error(source.root() + ": " + source.name(first->second) + " and " +
                             source.name(id) +
                             " differ in their extensions alone, and a picture "
                             "of a sample is found by its name without that");
  }
  return ids;
}

// Counts what has no counterpart.
struct Unpaired {
  int64_t count = 0;
  std::string first;
  void add(const std::string& name) {
    if (count++ == 0) first = name;
  }
};

std::unique_ptr<Source> source_of_folder(const std::string& folder, Split split) {
  ListedSamples listed{.root = folder_of_part(folder, split)};
  listed.paths = list_image_files(listed.root);
  listed.labels.resize(listed.paths.size());
  if (listed.paths.empty()) {
    throw std::runtime_error(
        listed.root + ": no images (jpg, jpeg, png, bmp, webp, tif, tiff) in it or in its folders");
  }
  return make_listed_source(std::move(listed));
}

}  // namespace

std::vector<PictureField> picture_fields(const SourceOptions& options) {
  std::vector<PictureField> fields;
  for (const std::string& text : options.pictures_from) {
    const auto refuse = [&](const std::string& problem) {
      throw InvalidField("SourceOptions", "pictures_from",
                         " has \"" + printable_name(text) + "\"" + problem);
    };
    const size_t equals = text.find('=');
    if (equals == text.npos || equals + 1 == text.size()) {
      refuse(", must be NAME=FIELD, as control=control.png, or of a folder NAME=PATH");
    }
    PictureField field{text.substr(0, equals), text.substr(equals + 1)};
    try {
      check_picture_name(field.name);
    } catch (const std::invalid_argument& error) {
      refuse(std::string(": ") + error.what());
    }
    if (field.field.find('\0') != text.npos) refuse(", which has a NUL byte");
    fields.push_back(std::move(field));
  }
  return fields;
}

NamedPictures pair_by_key(const Source& samples, const std::string& name,
                          std::shared_ptr<const Source> pictures, const PictureKey& key_of,
                          std::vector<SourceNote>& notes) {
  if (have_same_keys(samples, *pictures, key_of)) return {name, std::move(pictures)};
  const auto of_samples = ids_by_key(samples, key_of), of_pictures = ids_by_key(*pictures, key_of);
  NamedPictures paired{name, pictures};
  Unpaired alone, left_out;
  for (SampleId id = 0; id < samples.size(); ++id) {
    const auto found = of_pictures.find(key_of(samples.name(id)));
    paired.ids.push_back(found == of_pictures.end() ? -1 : found->second);
    if (found == of_pictures.end()) alone.add(samples.name(id));
  }
  for (SampleId id = 0; id < pictures->size(); ++id) {
    if (!of_samples.contains(key_of(pictures->name(id)))) left_out.add(pictures->name(id));
  }
  if (alone.count == samples.size()) {
    throw std::runtime_error(samples.root() + ": none of " + std::to_string(samples.size()) +
                             " samples has a picture '" + name + "'; the first is " +
                             samples.name(0) + ", and theirs is " + pictures->name(0) + " in " +
                             pictures->root());
  }
  if (alone.count > 0) {
    notes.push_back({"no_pair", alone.count, alone.first,
                     std::to_string(alone.count) +
                         (alone.count == 1 ? " sample has" : " samples have") + " no picture '" +
                         name + "', a bad sample, as " + alone.first});
  }
  if (left_out.count > 0) {
    notes.push_back({"no_picture", left_out.count, left_out.first,
                     std::to_string(left_out.count) +
                         (left_out.count == 1 ? " picture" : " pictures") + " '" + name +
                         "' of no sample left out, as " + left_out.first});
  }
  return paired;
}

std::unique_ptr<Source> open_picture_folders(const std::string& folder,
                                             const SourceOptions& options) {
  const auto stem_of = [](const std::string& name) { return std::string(stem_of_path(name)); };
  const std::vector<PictureField> fields = picture_fields(options);
  std::shared_ptr<const Source> samples = source_of_folder(folder, options.split);
  std::vector<NamedPictures> pictures;
  std::vector<SourceNote> notes;
  for (const auto& [name, path] : fields) {
    std::shared_ptr<const Source> others = source_of_folder(local_path(path), options.split);
    pictures.push_back(pair_by_key(*samples, name, std::move(others), stem_of, notes));
  }
  return std::make_unique<PicturesSource>(std::move(samples), std::move(pictures), notes);
}

}  // namespace stoker
