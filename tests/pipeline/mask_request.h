// Requests for masks in lines of words, which scripts write and golden files have:
//   picture WIDTH HEIGHT        of what follows; forgets everything before
//   polygon X Y X Y ...         one more of the object
//   runs LENGTH LENGTH ...      the object
//   move MOTION WIDTH HEIGHT VALUE ...   to a picture of this size; MOTION as in motion.h
//   bytes, bits                 gives the object's mask
//   labels FILL                 gives the moved label image, whose labels are not below FILL + 1:
//                               label (x, y) is FILL + 1 + (31 x + 17 y) modulo 97
//   wide FILL                   the same with labels of 4 bytes, 70000 times as large
//   union                       gives the run lengths of the object's polygons
#pragma once

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/annotation/mask_mover.h"
#include "pipeline/annotation/run_lengths.h"

namespace stoker {

// Returns the runs of the pixels that any of these masks of one size has, as rleMerge() of
// pycocotools: no run but the first is 0.
inline std::vector<uint32_t> united_runs(const std::vector<std::vector<uint32_t>>& masks) {
  std::vector<bool> pixels;
  for (const std::vector<uint32_t>& runs : masks) {
    size_t at = 0;
    for (size_t i = 0; i < runs.size(); at += runs[i], ++i) {
      pixels.resize(std::max(pixels.size(), at + runs[i]));
      if (i % 2 == 1) std::fill_n(pixels.begin() + static_cast<ptrdiff_t>(at), runs[i], true);
    }
  }
  std::vector<uint32_t> united;
  for (size_t at = 0; at < pixels.size();) {
    const size_t first = at;
    while (at < pixels.size() && pixels[at] == (united.size() % 2 == 1)) ++at;
    united.push_back(static_cast<uint32_t>(at - first));
  }
  return united;
}

class MaskRequests {
 public:
  struct Answer {
    Size size;
    std::vector<uint8_t> bytes;
  };

  // Returns what the line asks for, if it does.
  std::optional<Answer> take(const std::string& line) {
    std::istringstream in(line);
    std::string name;
    in >> name;
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    if (name == "picture") {
      begin({std::stoi(words.at(0)), std::stoi(words.at(1))});
    } else if (name == "polygon") {
      add_polygon(reals(words, 0));
    } else if (name == "runs") {
      for (const std::string& word : words) {
        annotations_.runs.push_back(static_cast<uint32_t>(std::stoul(word)));
      }
    } else if (name == "move") {
      moves_.push_back(movement(words));
    } else {
      return make(name, words.empty() ? 0 : std::stoi(words[0]));
    }
    return std::nullopt;
  }

  Size size() const { return moves_.empty() ? annotations_.size : moves_.back().after; }

 private:
  static std::vector<double> reals(const std::vector<std::string>& words, size_t first) {
    std::vector<double> values;
    for (size_t i = first; i < words.size(); ++i) {
      values.push_back(std::strtod(words[i].c_str(), nullptr));
    }
    return values;
  }

  void begin(Size size) {
    annotations_.clear();
    annotations_.size = size;
    moves_.clear();
  }

  void add_polygon(const std::vector<double>& values) {
    const auto first = static_cast<uint32_t>(annotations_.points.size());
    for (size_t i = 0; i + 1 < values.size(); i += 2) {
      annotations_.points.push_back({values[i], values[i + 1]});
    }
    annotations_.polygons.push_back({first, static_cast<uint32_t>(values.size() / 2)});
  }

  Movement movement(const std::vector<std::string>& words) const {
    static const std::map<std::string_view, Motion> kMotions = {
        {"crop", Motion::crop},     {"resize", Motion::resize},
        {"flip", Motion::flip},     {"vertical_flip", Motion::vertical_flip},
        {"turn", Motion::turn},     {"pad", Motion::pad},
        {"affine", Motion::affine}, {"perspective", Motion::perspective}};
    Movement movement;
    movement.motion = kMotions.at(words.at(0));
    movement.before = size();
    movement.after = {std::stoi(words.at(1)), std::stoi(words.at(2))};
    const std::vector<double> values = reals(words, 3);
    std::copy(values.begin(), values.end(), movement.values.begin());
    return movement;
  }

  std::optional<Answer> make(const std::string& name, int fill) {
    mover_.begin(annotations_.size);
    for (const Movement& movement : moves_) mover_.move(movement);
    Answer answer{mover_.size(), {}};
    const auto width = static_cast<size_t>(answer.size.width);
    const auto height = static_cast<size_t>(answer.size.height);
    if (name == "union") {
      const std::vector<uint32_t> runs = united();
      const auto* const bytes = reinterpret_cast<const uint8_t*>(runs.data());
      answer.bytes.assign(bytes, bytes + runs.size() * sizeof(uint32_t));
    } else if (name == "bytes" || name == "bits") {
      const bool are_bits = name == "bits";
      answer.bytes.resize(height * (are_bits ? (width + 7) / 8 : width), 0xA5);
      mover_.make_mask(annotations_, mask(), are_bits ? MaskForm::bits : MaskForm::bytes,
                       reinterpret_cast<std::byte*>(answer.bytes.data()));
    } else if (name == "labels" || name == "wide") {
      const LabelImage image = label_image(name == "wide" ? 4 : 1, fill);
      answer.bytes.resize(width * height * static_cast<size_t>(image.label_bytes), 0xA5);
      mover_.make_labels(image, fill, reinterpret_cast<std::byte*>(answer.bytes.data()));
    } else {
      throw std::invalid_argument("no request: " + name);
    }
    return answer;
  }

  MaskShape mask() const {
    if (!annotations_.runs.empty()) {
      return {MaskKind::runs, 0, static_cast<uint32_t>(annotations_.runs.size())};
    }
    return {MaskKind::polygons, 0, static_cast<uint32_t>(annotations_.polygons.size())};
  }

  std::vector<uint32_t> united() const {
    std::vector<std::vector<uint32_t>> masks;
    for (const Polygon& polygon : annotations_.polygons) {
      append_polygon_runs(std::span(annotations_.points).subspan(polygon.first, polygon.count),
                          annotations_.size, masks.emplace_back());
    }
    return united_runs(masks);
  }

  LabelImage label_image(int label_bytes, int fill) const {
    LabelImage image{annotations_.size, label_bytes, {}};
    for (int y = 0; y < image.size.height; ++y) {
      for (int x = 0; x < image.size.width; ++x) {
        const int label = fill + 1 + (31 * x + 17 * y) % 97;
        const int32_t wide = 70000 * label;
        const auto* const bytes = reinterpret_cast<const uint8_t*>(&wide);
        if (label_bytes == 1) {
          image.pixels.push_back(static_cast<uint8_t>(label));
        } else {
          image.pixels.insert(image.pixels.end(), bytes, bytes + sizeof wide);
        }
      }
    }
    return image;
  }

  Annotations annotations_;
  std::vector<Movement> moves_;
  MaskMover mover_;
};

}  // namespace stoker
