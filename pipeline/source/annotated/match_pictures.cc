#include "pipeline/source/annotated/match_pictures.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

#include "pipeline/files/printable_name.h"
#include "pipeline/source/format/known_names.h"

namespace stoker {
namespace {

// A dot is no extension by itself: "shelf.2.top" may be a name.
std::string_view without_extension(std::string_view path) {
  const std::string extension = extension_of(path);
  return is_shard_image_extension(extension) ? path.substr(0, path.size() - extension.size())
                                             : path;
}

bool ends_with_path(std::string_view path, std::string_view end) {
  return path.ends_with(end) &&
         (path.size() == end.size() || path[path.size() - end.size() - 1] == '/');
}

std::string shown_name(std::string_view name) { return printable_name(std::string(name)); }

class PictureMatcher {
 public:
  explicit PictureMatcher(const AnnotationSet& set) : set_(set) {}

  int64_t find(std::string_view sample) {
    // Most are found so.
    for (std::string_view path = sample;;) {
      if (const int64_t picture = set_.find(path); picture >= 0) return picture;
      const size_t slash = path.find('/');
      if (slash == path.npos) break;
      path.remove_prefix(slash + 1);
    }
    return find_by_stem(sample);
  }

 private:
  static std::string_view base_stem_of(std::string_view path) {
    const std::string_view whole = without_extension(path);
    return whole.substr(whole.rfind('/') + 1);
  }

  int64_t find_by_stem(std::string_view sample) {
    if (by_stem_.empty()) {
      for (int64_t i = 0; i < set_.pictures(); ++i) by_stem_.emplace(base_stem_of(set_.name(i)), i);
    }
    const std::string_view path = without_extension(sample);
    const auto [begin, end] = by_stem_.equal_range(base_stem_of(sample));
    int64_t found = -1, other = -1;
    size_t longest = 0;
    for (auto each = begin; each != end; ++each) {
      const std::string_view picture = without_extension(set_.name(each->second));
      if (!ends_with_path(path, picture) && !ends_with_path(picture, path)) continue;
      const size_t common = std::min(path.size(), picture.size());
      if (common < longest) continue;
      other = common == longest ? found : -1;
      longest = common;
      found = each->second;
    }
    if (other < 0) return found;
    const auto [first, second] = std::minmax(found, other);
    throw std::runtime_error("the picture " + shown_name(sample) + " may be " +
                             shown_name(set_.name(first)) + " or " + shown_name(set_.name(second)) +
                             " of the annotations");
  }

  const AnnotationSet& set_;
  std::unordered_multimap<std::string_view, int64_t> by_stem_;
};

}  // namespace

std::vector<int64_t> match_pictures(const AnnotationSet& set,
                                    const std::vector<std::string>& samples) {
  PictureMatcher matcher(set);
  std::vector<int64_t> pictures;
  std::vector<int64_t> sample_of(static_cast<size_t>(set.pictures()), -1);
  for (const std::string& sample : samples) {
    const int64_t picture = matcher.find(sample);
    if (picture >= 0) {
      int64_t& first = sample_of[static_cast<size_t>(picture)];
      if (first >= 0) {
        throw std::runtime_error("both " + shown_name(samples[static_cast<size_t>(first)]) +
                                 " and " + shown_name(sample) + " are the picture " +
                                 shown_name(set.name(picture)) + " of the annotations");
      }
      first = std::ssize(pictures);
    }
    pictures.push_back(picture);
  }
  return pictures;
}

}  // namespace stoker
