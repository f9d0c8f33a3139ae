#include "pipeline/source/annotated/coco.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "pipeline/files/printable_name.h"
#include "pipeline/files/read_piece.h"
#include "pipeline/source/annotated/annotation_code.h"
#include "pipeline/source/annotated/check_annotations.h"
#include "pipeline/source/annotated/kept_set.h"
#include "pipeline/source/annotated/object_scanner.h"

namespace stoker {
namespace {

// Class names are a list by number.
constexpr int64_t kMaxCategory = 99'999;

struct CocoImage {
  int64_t id = 0;
  int64_t width = 0, height = 0;
  std::string name;
};

struct CocoCategory {
  int64_t id = -1;
  std::string name;
  std::vector<std::string> keypoints;
};

// An object as it was found; the rest is in CocoReader::code_.
struct CocoObject {
  int64_t image = 0;  // its id; later its place
  int64_t id = 0;
  uint64_t code_at = 0;
  int32_t points = 0;    // keypoints in the code
  uint32_t problem = 0;  // in CocoReader::problems_; 0: none
  Size mask_size{};      // of run lengths
  bool has_id = false;
};

class CocoReader {
 public:
  CocoReader(ByteSupply supply, const std::string& label_root)
      : json_(std::move(supply)), label_root_(label_root) {}

  AnnotationSetBuilder read() {
    json_.read_object([&](std::string_view key) {
      if (key == "images") {
        has_images_ = true;
        json_.read_array([&] { read_image(); });
      } else if (key == "annotations") {
        has_annotations_ = true;
        json_.read_array([&] { read_annotation(); });
      } else if (key == "categories") {
        json_.read_array([&] { read_category(); });
      } else {
        json_.skip();
      }
    });
    json_.expect_end();
    for (const auto& [is_there, what] :
         {std::pair(has_images_, "images"), std::pair(has_annotations_, "annotations")}) {
      if (!is_there) throw JsonError(std::string("these are no annotations of COCO's: no ") + what);
    }
    return finish();
  }

 private:
  // One element of "images", "categories", "annotations" -------------------------------------

  void read_image() {
    CocoImage image;
    bool has_id = false;
    const int64_t at = json_.byte();
    json_.read_object([&](std::string_view key) {
      if (key == "id") {
        image.id = json_.read_whole();
        has_id = true;
      } else if (key == "file_name") {
        json_.read_string(image.name);
      } else if (key == "width") {
        image.width = json_.read_whole();
      } else if (key == "height") {
        image.height = json_.read_whole();
      } else {
        json_.skip();
      }
    });
    if (!has_id || image.name.empty()) fail_at(at, "an image without an id or a file_name");
    const auto [other, is_new] = images_by_id_.try_emplace(image.id, images_.size());
    if (!is_new) {
      fail_at(at, "two images have the id " + std::to_string(image.id) + ": " +
                      printable_name(images_[other->second].name) + " and " +
                      printable_name(image.name));
    }
    images_.push_back(std::move(image));
  }

  void read_category() {
    CocoCategory category;
    const int64_t at = json_.byte();
    json_.read_object([&](std::string_view key) {
      if (key == "id") {
        category.id = json_.read_whole();
      } else if (key == "name") {
        json_.read_string(category.name);
      } else if (key == "keypoints") {
        json_.read_array([&] { json_.read_string(category.keypoints.emplace_back()); });
      } else {
        json_.skip();
      }
    });
    if (category.name.empty()) fail_at(at, "a category without a name");
    if (category.id < 0 || category.id > kMaxCategory) {
      fail_at(at, "the category " + printable_name(category.name) + " has the id " +
                      std::to_string(category.id) + ", must be 0 to " +
                      std::to_string(kMaxCategory));
    }
    if (!categories_.try_emplace(category.id, std::move(category)).second) {
      fail_at(at, "two categories have the id " + std::to_string(category.id));
    }
  }

  // An object, or the segments of a picture.
  void read_annotation() {
    const int64_t at = json_.byte();
    const size_t first = objects_.size();
    std::string file_name;
    bool has_image = false, has_segments = false;
    int64_t image = 0;
    begin_object();
    json_.read_object([&](std::string_view key) {
      if (key == "image_id") {
        image = json_.read_whole();
        has_image = true;
      } else if (key == "segments_info") {
        has_segments = true;
        json_.read_array([&] { read_segment(); });
      } else if (key == "file_name") {
        json_.read_string(file_name);
      } else {
        read_object_field(key);
      }
    });
    if (!has_image) fail_at(at, "an annotation without an image_id");
    if (has_segments) {
      add_label_file(at, image, std::move(file_name));
    } else {
      end_object();
    }
    for (size_t i = first; i < objects_.size(); ++i) objects_[i].image = image;
  }

  void add_label_file(int64_t at, int64_t image, std::string file_name) {
    if (file_name.empty()) fail_at(at, "segments without a file_name");
    if (!label_files_.try_emplace(image, std::move(file_name)).second) {
      fail_at(at, "the image with the id " + std::to_string(image) + " has its segments twice");
    }
  }

  void read_segment() {
    begin_object();
    json_.read_object([&](std::string_view key) { read_object_field(key); });
    end_object();
  }

  // An object's fields -----------------------------------------------------------------------

  void begin_object() {
    scratch_.clear();
    scanned_ = {};
  }

  void read_object_field(std::string_view key) {
    if (key == "id") {
      scanned_.object.id = json_.read_whole();
      scanned_.has_id = true;
    } else if (key == "category_id") {
      scanned_.object.label = json_.read_whole();
      scanned_.has_label = true;
    } else if (key == "bbox") {
      object_.read_box(BoxFormat::xywh, scanned_);
    } else if (key == "area") {
      object_.read_area(scanned_);
    } else if (key == "iscrowd") {
      scanned_.object.is_crowd = json_.read_flag();
    } else if (key == "segmentation") {
      object_.read_mask(scanned_);
    } else if (key == "keypoints") {
      object_.read_keypoints(scanned_);
    } else {
      json_.skip();
    }
  }

  // Keeps the first one.
  void set_problem(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }

  void end_object() {
    if (!scanned_.has_box) scanned_.set_problem("it has no bbox");
    if (!scanned_.has_label) scanned_.set_problem("it has no category_id");
    scanned_.set_missing_area();
    scratch_.objects.push_back(scanned_.object);
    has_masks_ |= scanned_.object.mask.kind != MaskKind::none;
    any_box_ |= scanned_.has_box;
    CocoObject found{.id = scanned_.object.id,
                     .code_at = code_.size(),
                     .points = static_cast<int32_t>(scratch_.keypoints.size()),
                     .mask_size = scanned_.mask_size,
                     .has_id = scanned_.has_id};
    most_points_ = std::max(most_points_, found.points);
    CodeWriter out(code_);
    put_object({.keypoints = found.points}, scratch_, 0, out);
    if (!scanned_.problem.empty()) {
      problems_.push_back(std::move(scanned_.problem));
      found.problem = static_cast<uint32_t>(problems_.size());
    }
    objects_.push_back(found);
  }

  // When everything was read -----------------------------------------------------------------

  AnnotationSetBuilder finish() {
    if (!objects_.empty() && !any_box_) throw JsonError("none of its annotations has a bbox");
    AnnotationSetBuilder builder(make_info(), label_root_);
    mark_double_ids();
    const std::vector<uint32_t> ends = sort_by_image();
    size_t begin = 0;
    for (size_t i = 0; i < images_.size(); begin = ends[i++]) {
      add_picture(images_[i], std::span(order_).subspan(begin, ends[i] - begin), builder);
    }
    return builder;
  }

  AnnotationInfo make_info() {
    AnnotationInfo info{.objects = true, .masks = has_masks_};
    info.label_image = !label_files_.empty();
    info.label_bytes = info.label_image ? 4 : 1;
    const int64_t last = categories_.empty() ? -1 : categories_.rbegin()->first;
    info.class_names.resize(static_cast<size_t>(last + 1));
    for (const auto& [id, category] : categories_) {
      info.class_names[static_cast<size_t>(id)] = category.name;
      if (category.keypoints.size() > info.keypoint_names.size()) {
        info.keypoint_names = category.keypoints;
      }
    }
    info.keypoints = static_cast<int>(info.keypoint_names.size());
    if (info.keypoints == 0) info.keypoints = most_points_;
    points_ = static_cast<size_t>(info.keypoints);
    return info;
  }

  // In panoptic data an id is a colour, which each picture has again.
  void mark_double_ids() {
    if (!label_files_.empty()) return;
    std::vector<std::pair<int64_t, uint32_t>> ids;
    for (size_t i = 0; i < objects_.size(); ++i) {
      if (objects_[i].has_id) ids.emplace_back(objects_[i].id, static_cast<uint32_t>(i));
    }
    std::ranges::sort(ids);
    for (size_t i = 1; i < ids.size(); ++i) {
      if (ids[i].first != ids[i - 1].first) continue;
      CocoObject& second = objects_[ids[i].second];
      if (second.problem != 0) continue;
      problems_.emplace_back("an object before it has this id, too");
      second.problem = static_cast<uint32_t>(problems_.size());
    }
  }

  // Sets order_ to the objects of the first image, of the second, ... as they came. Returns where
  // those of each image end.
  std::vector<uint32_t> sort_by_image() {
    std::vector<uint32_t> places(images_.size() + 1);
    for (CocoObject& object : objects_) {
      const auto image = images_by_id_.find(object.image);
      if (image == images_by_id_.end()) {
        throw JsonError("the object with the id " + std::to_string(object.id) +
                        " is of an image with the id " + std::to_string(object.image) +
                        ", which is not there");
      }
      object.image = static_cast<int64_t>(image->second);
      ++places[image->second + 1];
    }
    for (size_t i = 1; i < places.size(); ++i) places[i] += places[i - 1];
    order_.resize(objects_.size());
    for (size_t i = 0; i < objects_.size(); ++i) {
      order_[places[static_cast<size_t>(objects_[i].image)]++] = static_cast<uint32_t>(i);
    }
    return places;
  }

  void add_picture(const CocoImage& image, std::span<const uint32_t> objects,
                   AnnotationSetBuilder& builder) {
    scratch_.clear();
    problem_.clear();
    scratch_.picture_id = image.id;
    scratch_.size = {side_of(static_cast<double>(image.width)),
                     side_of(static_cast<double>(image.height))};
    for (const uint32_t number : objects) add_object(objects_[number]);
    PictureAnnotations picture{.name = image.name, .annotations = &scratch_, .problem = problem_};
    if (!label_files_.empty()) {
      const auto file = label_files_.find(image.id);
      if (file == label_files_.end()) {
        set_problem("it has no segments");
        picture.problem = problem_;
      } else {
        picture.label_file = file->second;
      }
    }
    builder.add(picture);
  }

  void add_object(const CocoObject& found) {
    CodeReader in(std::string_view(code_).substr(found.code_at));
    get_object({.keypoints = found.points}, in, scratch_);
    const AnnotatedObject& object = scratch_.objects.back();
    std::string problem = found.problem == 0 ? "" : problems_[found.problem - 1];
    if (problem.empty()) problem = problem_with_image(found, object);
    if (!problem.empty()) set_problem(object_words(object) + problem);
    // Objects without keypoints have none that is labelled.
    scratch_.keypoints.resize(scratch_.objects.size() * points_);
  }

  std::string problem_with_image(const CocoObject& found, const AnnotatedObject& object) const {
    if (found.points != 0 && found.points != points_of(object.label)) {
      return std::to_string(found.points) + " keypoints, must be " +
             std::to_string(points_of(object.label));
    }
    return mask_size_problem(object.mask, found.mask_size, scratch_.size);
  }

  int64_t points_of(int64_t label) const {
    const auto category = categories_.find(label);
    const bool has_own = category != categories_.end() && !category->second.keypoints.empty();
    return has_own ? std::ssize(category->second.keypoints) : static_cast<int64_t>(points_);
  }

  [[noreturn]] static void fail_at(int64_t byte, const std::string& what) {
    throw JsonError("byte " + std::to_string(byte) + ": " + what);
  }

  JsonScanner json_;
  const std::string label_root_;
  bool has_images_ = false, has_annotations_ = false, has_masks_ = false, any_box_ = false;
  std::vector<CocoImage> images_;
  std::unordered_map<int64_t, size_t> images_by_id_;  // their places
  std::map<int64_t, CocoCategory> categories_;
  std::unordered_map<int64_t, std::string> label_files_;  // by the image's id
  std::vector<CocoObject> objects_;
  std::vector<uint32_t> order_;        // of the objects
  std::string code_;                   // of all objects (annotation_code.h)
  std::vector<std::string> problems_;  // of objects that are wrong
  int32_t most_points_ = 0;
  size_t points_ = 0;  // keypoints of each object

  // The object, or the picture, that is being read.
  Annotations scratch_;
  ScannedObject scanned_;
  ObjectScanner object_{json_, scratch_};
  std::string problem_;  // of the picture
};

}  // namespace

AnnotationSetBuilder read_coco(ByteSupply json, const std::string& label_root) {
  return CocoReader(std::move(json), label_root).read();
}

SharedAnnotations open_coco(const std::string& path, const std::string& cache_dir) {
  return keep_set(path, cache_dir, [&] {
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) throw std::runtime_error(std::strerror(errno));
    int64_t at = 0;
    const auto supply = [&](std::span<char> out) -> size_t {
      const int64_t count =
          read_piece(file.get(), at, {reinterpret_cast<uint8_t*>(out.data()), out.size()});
      if (count < 0) throw std::runtime_error(std::strerror(errno));
      at += count;
      return static_cast<size_t>(count);
    };
    return read_coco(supply, std::filesystem::path(path).replace_extension().string());
  });
}

}  // namespace stoker
