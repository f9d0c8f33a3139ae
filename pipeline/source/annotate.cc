#include "pipeline/source/annotate.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <stdexcept>

#include "decode/image_decoder.h"
#include "pipeline/files/invalid_field.h"
#include "pipeline/files/printable_name.h"
#include "pipeline/source/annotated/coco.h"
#include "pipeline/source/annotated/files_below.h"
#include "pipeline/source/annotated/label_folder.h"
#include "pipeline/source/annotated/match_pictures.h"
#include "pipeline/source/annotated/voc.h"
#include "pipeline/source/annotated/yolo.h"
#include "pipeline/source/annotated_source.h"
#include "pipeline/source/folder_index.h"
#include "pipeline/source/folder_query.h"
#include "pipeline/source/format/formats.h"
#include "pipeline/source/format/known_names.h"
#include "pipeline/source/listed_source.h"
#include "pipeline/source/sample_file.h"
#include "pipeline/source/subset_source.h"
#include "staging/error_text.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_objects(const std::string& path, const std::string& what) {
  throw InvalidField("SourceOptions", "objects", ": " + path + ": " + what);
}

enum class AnnotationForm { coco, voc, yolo, labels };

AnnotationForm form_of(const std::string& path) {
  std::error_code ignored;
  if (extension_of(path) == ".json") return AnnotationForm::coco;
  if (!fs::is_directory(path, ignored)) refuse_objects(path, "neither COCO's JSON nor a folder");
  for (const auto& [extension, form] :
       {std::pair(".xml", AnnotationForm::voc), std::pair(".txt", AnnotationForm::yolo),
        std::pair(".png", AnnotationForm::labels)}) {
    if (!files_below(path, extension).empty()) return form;
  }
  refuse_objects(path, "no annotations there: .xml (VOC), .txt (YOLO) or .png (label images)");
}

// Calls open(), whose errors become those of the option.
template <typename Open>
SharedAnnotations open_objects(const Open& open) {
  try {
    return open();
  } catch (const std::runtime_error& error) {
    throw InvalidField("SourceOptions", "objects", std::string(": ") + error_text(error));
  }
}

// All but YOLO's, for which one must know the pictures.
SharedAnnotations open_form(AnnotationForm form, const SourceOptions& options) {
  return open_objects([&] {
    if (form == AnnotationForm::coco) return open_coco(options.objects, options.cache_dir);
    if (form == AnnotationForm::voc) return open_voc(options.objects);
    return open_label_folder(options.objects);
  });
}

// The size of the picture in a file; {} if it has none. Most headers are at the beginning.
Size size_of_file(const std::string& path, ImageDecoder& decoder) {
  constexpr size_t kHeaderBytes = size_t{1} << 14;
  const Descriptor file(open_sample_file(AT_FDCWD, path.c_str()));
  std::vector<uint8_t> bytes(kHeaderBytes);
  const int64_t count = file.get() < 0 ? -1 : read_piece(file.get(), 0, bytes);
  if (count <= 0) return {};
  ImageInfo info;
  const std::span first(bytes.data(), static_cast<size_t>(count));
  if (decoder.info(first, info).ok()) return info.size;
  std::span<const uint8_t> whole;
  const bool is_read = read_sample_file(file.get(), bytes, whole).ok;
  return is_read && decoder.info(whole, info).ok() ? info.size : Size{};
}

// YOLO's annotations of the pictures among the files in `root`. `backgrounds` gets those that have
// none, unless all are such: then these are other pictures.
SharedAnnotations open_yolo_beside(const std::string& objects, const std::string& root,
                                   const std::vector<std::string>& files,
                                   std::vector<std::string>& backgrounds) {
  return open_objects([&] {
    const std::vector<std::string> names = yolo_names(objects);
    AnnotationSetBuilder builder({});
    for (const std::string& name : names) builder.add(name, {});
    const std::vector<int64_t> pictures = match_pictures(*builder.finish(), files);
    std::vector<std::string> paths(names.size());
    for (size_t i = 0; i < files.size(); ++i) {
      if (pictures[i] < 0) {
        backgrounds.push_back(files[i]);
      } else {
        paths[static_cast<size_t>(pictures[i])] = root + "/" + files[i];
      }
    }
    if (backgrounds.size() == files.size()) backgrounds.clear();
    ImageDecoder decoder;
    const auto size_of = [&](size_t i) {
      return paths[i].empty() ? Size{} : size_of_file(paths[i], decoder);
    };
    return open_yolo(objects, names, size_of, backgrounds);
  });
}

SourceNote background_note(const std::vector<std::string>& names) {
  const auto count = std::ssize(names);
  const std::string first = printable_name(names[0]);
  return {"background", count, first,
          std::to_string(count) + (count == 1 ? " picture has" : " pictures have") +
              " no text file, and so no objects, as " + first};
}

// Which picture each sample is, and what is left out.
struct MatchedPictures {
  std::vector<int64_t> samples;   // those that are pictures of the set
  std::vector<int64_t> pictures;  // which ones
  std::vector<SourceNote> notes;
};

SourceNote left_out_note(const char* reason, int64_t count, std::string_view first,
                         const char* what) {
  const std::string name = printable_name(std::string(first));
  return {reason, count, name,
          std::to_string(count) + (count == 1 ? " picture has " : " pictures have ") + what +
              " and " + (count == 1 ? "is" : "are") + " left out, as " + name};
}

MatchedPictures match_samples(const AnnotationSet& set, const std::vector<std::string>& names,
                              const std::string& data, const std::string& objects) {
  MatchedPictures matched;
  std::vector<bool> has_sample(static_cast<size_t>(set.pictures()));
  const std::vector<int64_t> pictures = match_pictures(set, names);
  for (size_t i = 0; i < pictures.size(); ++i) {
    if (pictures[i] < 0) continue;
    matched.samples.push_back(static_cast<int64_t>(i));
    matched.pictures.push_back(pictures[i]);
    has_sample[static_cast<size_t>(pictures[i])] = true;
  }
  const auto without = std::ssize(names) - std::ssize(matched.samples);
  if (matched.samples.empty()) {
    throw std::runtime_error(
        data + ": none of " + std::to_string(names.size()) + " pictures is one of " +
        std::to_string(set.pictures()) + " in " + objects +
        (names.empty() ? "" : "; the first is " + printable_name(names[0])) +
        (set.pictures() == 0 ? "" : ", theirs is " + printable_name(std::string(set.name(0)))));
  }
  if (without > 0) {
    const auto first = std::ranges::find_if(pictures, [](int64_t picture) { return picture < 0; });
    matched.notes.push_back(left_out_note("not_annotated", without,
                                          names[static_cast<size_t>(first - pictures.begin())],
                                          "no annotation"));
  }
  const auto missing = std::ranges::count(has_sample, false);
  if (missing > 0) {
    const auto first = std::ranges::find(has_sample, false) - has_sample.begin();
    matched.notes.push_back(
        left_out_note("no_picture", missing, set.name(first), "an annotation, but no file"));
  }
  return matched;
}

// Returns the name without the shard's: "a/1.jpg" of "data/train-3.tar/a/1.jpg".
std::string name_in_shard(const std::string& name) {
  for (size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1)) {
    if (blob_format(name.substr(0, slash))) return name.substr(slash + 1);
  }
  return name;
}

// Annotations in the records and those beside them are not put together.
void refuse_records(const SourceOptions& options) {
  for (const auto& [option, value] : {std::pair("objects_from", options.objects_from),
                                      std::pair("label_image_from", options.label_image_from)}) {
    if (value.empty()) continue;
    throw InvalidField(
        "SourceOptions", option,
        " is \"" + value + "\", and `objects` names other annotations, " + options.objects);
  }
}

}  // namespace

std::unique_ptr<Source> annotate_folder(const std::string& folder, const SourceOptions& options) {
  const AnnotationForm form = form_of(options.objects);
  const std::string root = folder_of_part(folder, options.split);
  const std::vector<std::string> files = list_image_files(root);
  std::vector<std::string> backgrounds;
  const SharedAnnotations set = form == AnnotationForm::yolo
                                    ? open_yolo_beside(options.objects, root, files, backgrounds)
                                    : open_form(form, options);
  MatchedPictures matched = match_samples(*set, files, root, options.objects);
  std::vector<size_t> order(matched.samples.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return matched.pictures[i]; });
  ListedSamples listed{.root = root};
  SampleAnnotations annotations{.set = set, .origin = options.objects};
  for (const size_t i : order) {
    listed.paths.push_back(files[static_cast<size_t>(matched.samples[i])]);
    annotations.pictures.push_back(matched.pictures[i]);
  }
  listed.labels.resize(listed.paths.size());
  annotations.notes = std::move(matched.notes);
  if (!backgrounds.empty()) annotations.notes.push_back(background_note(backgrounds));
  return std::make_unique<AnnotatedSource>(
      std::shared_ptr<const Source>(make_listed_source(std::move(listed))), std::move(annotations));
}

std::unique_ptr<Source> annotate_source(
    const std::function<std::unique_ptr<Source>(const SourceOptions&)>& open,
    const std::string& data, const SourceOptions& options) {
  refuse_records(options);
  SourceOptions plain = options;
  plain.objects.clear();
  if (plain.label_from.empty()) plain.label_from = "none";
  std::unique_ptr<Source> source = open(plain);
  const AnnotationForm form = form_of(options.objects);
  if (form == AnnotationForm::yolo) {
    refuse_objects(options.objects,
                   "YOLO's numbers are shares of a picture's size, and need the "
                   "pictures as files in a folder");
  }
  const SharedAnnotations set = open_form(form, options);
  std::vector<std::string> names;
  for (SampleId id = 0; id < source->size(); ++id) names.push_back(name_in_shard(source->name(id)));
  MatchedPictures matched = match_samples(*set, names, data, options.objects);
  std::shared_ptr<const Source> shown = std::move(source);
  if (matched.samples.size() < names.size()) {
    const std::shared_ptr<const Source> whole = shown;
    shown = {new SubsetSource(*whole, matched.samples),
             [whole](const Source* subset) { delete subset; }};
  }
  return std::make_unique<AnnotatedSource>(
      std::move(shown), SampleAnnotations{set, std::move(matched.pictures), options.objects,
                                          std::move(matched.notes)});
}

}  // namespace stoker
