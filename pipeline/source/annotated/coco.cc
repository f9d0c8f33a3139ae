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

#include "pipeline/annotation/run_lengths.h"
#include "pipeline/files/printable_name.h"
#include "pipeline/files/read_piece.h"
#include "pipeline/source/annotated/annotation_code.h"
#include "pipeline/source/annotated/check_annotations.h"
#include "pipeline/source/annotated/kept_set.h"

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
    scratch_.objects.emplace_back();
    found_ = {};
    problem_.clear();
    has_box_ = has_area_ = has_class_ = false;
  }

  void read_object_field(std::string_view key) {
    AnnotatedObject& object = scratch_.objects[0];
    if (key == "id") {
      object.id = found_.id = json_.read_whole();
      found_.has_id = true;
    } else if (key == "category_id") {
      object.label = json_.read_whole();
      has_class_ = true;
    } else if (key == "bbox") {
      read_box(object.box);
    } else if (key == "area") {
      object.area = json_.read_number();
      has_area_ = true;
    } else if (key == "iscrowd") {
      object.is_crowd = json_.read_flag();
    } else if (key == "segmentation") {
      read_mask(object.mask);
    } else if (key == "keypoints") {
      read_keypoints();
    } else {
      json_.skip();
    }
  }

  void read_numbers() {
    numbers_.clear();
    json_.read_array([&] { numbers_.push_back(json_.read_number()); });
  }

  void read_box(std::array<double, 4>& box) {
    read_numbers();
    has_box_ = true;
    if (numbers_.size() != box.size()) {
      return set_problem("the bbox has " + std::to_string(numbers_.size()) + " numbers, must be 4");
    }
    box = {numbers_[0], numbers_[1], numbers_[0] + numbers_[2], numbers_[1] + numbers_[3]};
  }

  void read_keypoints() {
    read_numbers();
    if (numbers_.size() % 3 != 0) {
      return set_problem(std::to_string(numbers_.size()) +
                         " numbers of keypoints, must be 3 for each");
    }
    for (size_t i = 0; i < numbers_.size(); i += 3) {
      scratch_.keypoints.push_back({numbers_[i], numbers_[i + 1], numbers_[i + 2]});
    }
  }

  void read_mask(MaskShape& mask) {
    const char kind = json_.next_kind();
    if (kind == '[') return read_polygons(mask);
    if (kind == '{') return read_runs(mask);
    json_.skip();
    if (kind != 'n') set_problem("the segmentation is neither a list of polygons nor run lengths");
  }

  void read_polygons(MaskShape& mask) {
    json_.read_array([&] {
      if (json_.next_kind() != '[') {
        json_.skip();
        return set_problem("the segmentation is no list of polygons");
      }
      read_numbers();
      if (numbers_.size() % 2 != 0) {
        set_problem("a polygon of " + std::to_string(numbers_.size()) + " numbers");
      }
      const auto first = static_cast<uint32_t>(scratch_.points.size());
      for (size_t i = 0; i + 1 < numbers_.size(); i += 2) {
        scratch_.points.push_back({numbers_[i], numbers_[i + 1]});
      }
      scratch_.polygons.push_back({first, static_cast<uint32_t>(numbers_.size() / 2)});
    });
    mask.count = static_cast<uint32_t>(scratch_.polygons.size());
    mask.kind = mask.count > 0 ? MaskKind::polygons : MaskKind::none;
  }

  void read_runs(MaskShape& mask) {
    bool has_counts = false;
    json_.read_object([&](std::string_view key) {
      if (key == "counts") {
        has_counts = true;
        read_counts();
      } else if (key == "size") {
        read_numbers();
        if (numbers_.size() == 2) found_.mask_size = {side_of(numbers_[1]), side_of(numbers_[0])};
      } else {
        json_.skip();
      }
    });
    if (!has_counts) return set_problem("run lengths without counts");
    mask = {MaskKind::runs, 0, static_cast<uint32_t>(scratch_.runs.size())};
  }

  void read_counts() {
    if (json_.next_kind() == '"') {
      json_.read_string(text_);
      set_problem(append_text_runs(text_, scratch_.runs));
      return;
    }
    read_numbers();
    for (const double number : numbers_) {
      const bool is_run = number >= 0 && number < 4294967296.0 && number == std::floor(number);
      if (!is_run) set_problem("a run length that is none");
      scratch_.runs.push_back(is_run ? static_cast<uint32_t>(number) : 0);
    }
  }

  static int side_of(double number) {
    return number >= 0 && number <= std::numeric_limits<int>::max() ? static_cast<int>(number) : -1;
  }

  // Keeps the first one.
  void set_problem(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }

  void end_object() {
    AnnotatedObject& object = scratch_.objects[0];
    if (!has_box_) set_problem("it has no bbox");
    if (!has_class_) set_problem("it has no category_id");
    if (!has_area_) {
      object.area = (object.box[2] - object.box[0]) * (object.box[3] - object.box[1]);
    }
    has_masks_ |= object.mask.kind != MaskKind::none;
    any_box_ |= has_box_;
    found_.code_at = code_.size();
    found_.points = static_cast<int32_t>(scratch_.keypoints.size());
    most_points_ = std::max(most_points_, found_.points);
    CodeWriter out(code_);
    put_object({.keypoints = found_.points}, scratch_, 0, out);
    if (!problem_.empty()) {
      problems_.push_back(std::move(problem_));
      found_.problem = static_cast<uint32_t>(problems_.size());
    }
    objects_.push_back(found_);
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
    if (object.mask.kind == MaskKind::runs && found.mask_size != scratch_.size) {
      return "the run lengths are of " + std::to_string(found.mask_size.width) + " x " +
             std::to_string(found.mask_size.height) + " pixels, the picture has " +
             std::to_string(scratch_.size.width) + " x " + std::to_string(scratch_.size.height);
    }
    return "";
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
  CocoObject found_;
  std::string problem_, text_;
  std::vector<double> numbers_;
  bool has_box_ = false, has_area_ = false, has_class_ = false;
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
