#include "pipeline/annotation/pixel_map.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace stoker {
namespace {

void keep_part(std::vector<int32_t>& map, double first, double count) {
  const auto from = map.begin() + static_cast<ptrdiff_t>(first);
  std::copy_n(from, static_cast<ptrdiff_t>(count), map.begin());
  map.resize(static_cast<size_t>(count));
}

void pad_map(std::vector<int32_t>& map, double before, double after) {
  map.insert(map.begin(), static_cast<size_t>(before), AxisMaps::kNothing);
  map.insert(map.end(), static_cast<size_t>(after), AxisMaps::kNothing);
}

// As torch's interpolate() with mode "nearest".
void resize_map(std::vector<int32_t>& map, int size) {
  const auto before = static_cast<int>(map.size());
  if (before == size) return;
  const float scale = static_cast<float>(before) / static_cast<float>(size);
  const auto source = [&](int place) {
    return static_cast<size_t>(
        std::min(static_cast<int>(static_cast<float>(place) * scale), before - 1));
  };
  if (size > before) {
    map.resize(static_cast<size_t>(size));
    for (int place = size - 1; place >= 0; --place) {
      map[static_cast<size_t>(place)] = map[source(place)];
    }
  } else {
    for (int place = 0; place < size; ++place) {
      map[static_cast<size_t>(place)] = map[source(place)];
    }
    map.resize(static_cast<size_t>(size));
  }
}

// Where a warp finds the pixels of the picture before it, as torchvision computes it.
class WarpedPlaces {
 public:
  explicit WarpedPlaces(const Movement& warp)
      : before_(warp.before), is_perspective_(warp.motion == Motion::perspective) {
    const std::array<double, 8>& m = warp.values;
    const double out_width = warp.after.width, out_height = warp.after.height;
    if (is_perspective_) {
      set_axis(x_, {m[0], m[1], m[2]}, out_width);
      set_axis(y_, {m[3], m[4], m[5]}, out_height);
      divisor_ = {static_cast<float>(m[6]), static_cast<float>(m[7]), 1.0F};
      first_x_ = first_y_ = 0.5F;
      return;
    }
    // Coordinates from the middles of both pictures.
    const auto from_middle = [&](size_t i, double size) {
      return m[i + 2] + m[i] * out_width * 0.5 + m[i + 1] * out_height * 0.5 - size * 0.5;
    };
    set_axis(x_, {m[0], m[1], from_middle(0, before_.width)}, before_.width);
    set_axis(y_, {m[3], m[4], from_middle(3, before_.height)}, before_.height);
    first_x_ = static_cast<float>((1.0 - out_width) * 0.5);
    first_y_ = static_cast<float>((1.0 - out_height) * 0.5);
  }

  // Replaces places of the warped picture by those that they show. Nothing stays nothing.
  void replace(std::span<AxisMaps::Place> places) const {
    if (is_perspective_) {
      replace_each<true>(places);
    } else {
      replace_each<false>(places);
    }
  }

 private:
  using Row = std::array<float, 3>;

  // Coordinates go from -1 to 1, after grid_sample()'s way.
  static void set_axis(Row& row, const std::array<double, 3>& numbers, double size) {
    const auto half = static_cast<float>(0.5 * size);
    for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(numbers[i]) / half;
  }

  // Without a branch, for the compiler makes vectors of it.
  template <bool kIsPerspective>
  void replace_each(std::span<AxisMaps::Place> places) const {
    const int width = before_.width, height = before_.height;
    for (AxisMaps::Place& place : places) {
      const float x = first_x_ + static_cast<float>(place.x);
      const float y = first_y_ + static_cast<float>(place.y);
      float to_x = at(x_, x, y), to_y = at(y_, x, y);
      if constexpr (kIsPerspective) {
        const float divisor = at(divisor_, x, y);
        to_x = to_x / divisor - 1.0F;
        to_y = to_y / divisor - 1.0F;
      }
      const int32_t column = pixel(to_x, width), row = pixel(to_y, height);
      const bool is_seen =
          (place.x >= 0) & (column >= 0) & (column < width) & (row >= 0) & (row < height);
      place = {is_seen ? column : AxisMaps::kNothing, is_seen ? row : 0};
    }
  }

  static float at(const Row& row, float x, float y) { return (x * row[0] + y * row[1]) + row[2]; }

  // The nearest pixel, halves go to the even one; -1 and `size` if it lies outside.
  static int32_t pixel(float coordinate, int size) {
    constexpr float kWhole = 12582912.0F;  // 1.5 * 2^23: floats of this size are whole numbers
    const float end = static_cast<float>(size), half = end / 2.0F;
    float at = (((coordinate + 1.0F) * half - 0.5F) + kWhole) - kWhole;
    at = at > -1.0F ? at : -1.0F;  // not a number, too
    return static_cast<int32_t>(at < end ? at : end);
  }

  Size before_;
  bool is_perspective_;
  Row x_{}, y_{}, divisor_{};
  float first_x_ = 0, first_y_ = 0;
};

}  // namespace

void AxisMaps::begin(Size size) {
  before = size;
  is_turned = false;
  along_x.resize(static_cast<size_t>(size.width));
  along_y.resize(static_cast<size_t>(size.height));
  std::iota(along_x.begin(), along_x.end(), 0);
  std::iota(along_y.begin(), along_y.end(), 0);
}

void AxisMaps::move(const Movement& movement) {
  const auto& values = movement.values;
  switch (movement.motion) {
    case Motion::crop:
      keep_part(along_x, values[0], values[2]);
      keep_part(along_y, values[1], values[3]);
      break;
    case Motion::resize:
      resize_map(along_x, movement.after.width);
      resize_map(along_y, movement.after.height);
      break;
    case Motion::flip:
      std::reverse(along_x.begin(), along_x.end());
      break;
    case Motion::vertical_flip:
      std::reverse(along_y.begin(), along_y.end());
      break;
    case Motion::turn:
      for (int quarter = 0; quarter < static_cast<int>(values[0]); ++quarter) {
        std::reverse(along_x.begin(), along_x.end());
        std::swap(along_x, along_y);
        is_turned = !is_turned;
      }
      break;
    case Motion::pad:
      pad_map(along_x, values[0], values[2]);
      pad_map(along_y, values[1], values[3]);
      break;
    default:
      break;
  }
}

void AxisMaps::replace(std::span<Place> places) const {
  for (Place& place : places) {
    if (place.x == kNothing) continue;
    const int32_t x = along_x[static_cast<size_t>(place.x)];
    const int32_t y = along_y[static_cast<size_t>(place.y)];
    if (x == kNothing || y == kNothing) {
      place = {kNothing, 0};
    } else {
      place = is_turned ? Place{y, x} : Place{x, y};
    }
  }
}

void PixelMap::begin(Size source) {
  count_ = 0;
  add_stage({}, source);
}

void PixelMap::add_stage(const Movement& warp, Size size) {
  if (count_ == stages_.size()) stages_.emplace_back();
  stages_[count_].warp = warp;
  stages_[count_].maps.begin(size);
  ++count_;
  has_places_ = false;
}

void PixelMap::move(const Movement& movement) {
  if (movement.motion == Motion::affine || movement.motion == Motion::perspective) {
    add_stage(movement, movement.after);
  } else {
    stages_[count_ - 1].maps.move(movement);
    has_places_ = false;
  }
}

std::span<const PixelMap::Place> PixelMap::places() {
  if (!has_places_) {
    const auto width = static_cast<size_t>(size().width),
               height = static_cast<size_t>(size().height);
    places_.resize(width * height);
    for (size_t y = 0; y < height; ++y) {
      find_places(static_cast<int>(y), std::span(places_).subspan(y * width, width));
    }
    has_places_ = true;
  }
  return places_;
}

// From the last stage back to the first.
void PixelMap::find_places(int y, std::span<Place> row) const {
  for (size_t x = 0; x < row.size(); ++x) row[x] = {static_cast<int32_t>(x), y};
  for (size_t stage = count_ - 1; stage > 0; --stage) {
    stages_[stage].maps.replace(row);
    WarpedPlaces(stages_[stage].warp).replace(row);
  }
}

}  // namespace stoker
