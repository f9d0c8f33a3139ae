#include "tools/data/shapes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>

#include "pipeline/random/random_key.h"

namespace stoker {
namespace {

constexpr double kPi = std::numbers::pi;

struct ShapePoint {
  double x = 0, y = 0;
};
struct Color {
  double r = 0, g = 0, b = 0;  // 0..1
};

// Draws the random numbers of one image in order.
class ShapeDraws {
 public:
  explicit ShapeDraws(const RandomKey& key) : key_(key) {}
  double uniform(double low, double high) { return key_.uniform(next_++, low, high); }
  int below(int bound) { return static_cast<int>(key_.below(next_++, bound)); }
  double normal() { return key_.normal(next_++); }
  Color color() { return {uniform(0, 1), uniform(0, 1), uniform(0, 1)}; }

 private:
  RandomKey key_;
  uint32_t next_ = 0;
};

Color mix(const Color& a, const Color& b, double t) {
  return {a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t};
}

double distance(const Color& a, const Color& b) {
  return std::sqrt((a.r - b.r) * (a.r - b.r) + (a.g - b.g) * (a.g - b.g) +
                   (a.b - b.b) * (a.b - b.b));
}

// Two colours and a pattern that mixes them: even, stripes, checks, blobs or a ramp.
struct Texture {
  Color a, b;
  int pattern = 0;
  double angle = 0, frequency = 1, phase = 0;

  Color at(ShapePoint p) const {
    const double u = (p.x * std::cos(angle) + p.y * std::sin(angle)) * frequency + phase;
    const double v = (p.y * std::cos(angle) - p.x * std::sin(angle)) * frequency + phase;
    switch (pattern) {
      case 1:
        return mix(a, b, 0.5 + 0.5 * std::sin(u));
      case 2:
        return mix(a, b, std::sin(u) * std::sin(v) > 0 ? 1.0 : 0.0);
      case 3:
        return mix(a, b, 0.5 + 0.5 * std::sin(u + 1.3 * std::sin(0.7 * v)) * std::cos(v));
      case 4:
        return mix(a, b, std::clamp(0.5 + 0.5 * (u - phase) / frequency, 0.0, 1.0));
      default:
        return a;
    }
  }
};

// `spread`: how different the two colours may be, 0 to 1.
Texture draw_texture(ShapeDraws& draws, double spread) {
  Texture texture;
  texture.a = draws.color();
  texture.b = mix(texture.a, draws.color(), spread);
  texture.pattern = draws.below(5);
  texture.angle = draws.uniform(0, kPi);
  texture.frequency = draws.uniform(4, 16);
  texture.phase = draws.uniform(0, 2 * kPi);
  return texture;
}

bool in_polygon(std::span<const ShapePoint> corners, ShapePoint p) {
  bool inside = false;
  for (size_t i = 0, j = corners.size() - 1; i < corners.size(); j = i++) {
    const ShapePoint &a = corners[i], &b = corners[j];
    if ((a.y > p.y) != (b.y > p.y) && p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x) {
      inside = !inside;
    }
  }
  return inside;
}

constexpr std::array<ShapePoint, 7> kArrow = {
    {{1, 0}, {0.1, 0.75}, {0.1, 0.28}, {-0.95, 0.28}, {-0.95, -0.28}, {0.1, -0.28}, {0.1, -0.75}}};
constexpr std::array<ShapePoint, 4> kBowtie = {
    {{-0.9, -0.7}, {0.9, 0.7}, {0.9, -0.7}, {-0.9, 0.7}}};
constexpr std::array<ShapePoint, 12> kCross = {{{0.28, 0.95},
                                                {0.28, 0.28},
                                                {0.95, 0.28},
                                                {0.95, -0.28},
                                                {0.28, -0.28},
                                                {0.28, -0.95},
                                                {-0.28, -0.95},
                                                {-0.28, -0.28},
                                                {-0.95, -0.28},
                                                {-0.95, 0.28},
                                                {-0.28, 0.28},
                                                {-0.28, 0.95}}};
constexpr std::array<ShapePoint, 4> kSquare = {
    {{0.75, 0.75}, {0.75, -0.75}, {-0.75, -0.75}, {-0.75, 0.75}}};
constexpr std::array<ShapePoint, 3> kTriangle = {{{1, 0}, {-0.5, 0.87}, {-0.5, -0.87}}};

std::array<ShapePoint, 10> star_corners() {
  std::array<ShapePoint, 10> corners;
  for (int i = 0; i < 10; ++i) {
    const double radius = i % 2 == 0 ? 1.0 : 0.42;
    corners[i] = {radius * std::cos(i * kPi / 5), radius * std::sin(i * kPi / 5)};
  }
  return corners;
}

// Not std::hypot(), which g++ takes from glibc 2.35: wheels of stoker run with 2.34 as well.
double distance_from_origin(double x, double y) { return std::sqrt(x * x + y * y); }

// Returns whether `p` is inside the shape, in the shape's own coordinates (it fills the circle of
// radius 1). The classes are in the order of shape_names().
bool in_shape(int label, ShapePoint p) {
  static const std::array<ShapePoint, 10> star = star_corners();
  const double radius = distance_from_origin(p.x, p.y);
  switch (label) {
    case 0:
      return in_polygon(kArrow, p);
    case 1:
      return in_polygon(kBowtie, p);
    case 2:
      return radius < 0.95 && distance_from_origin(p.x - 0.45, p.y) > 0.75;
    case 3:
      return in_polygon(kCross, p);
    case 4:
      return radius < 0.85;
    case 5: {
      const double x = 1.15 * p.x, y = 1.25 * p.y + 0.1, s = x * x + y * y - 1;
      return s * s * s < x * x * y * y * y;
    }
    case 6:
      return radius < 0.92 && radius > 0.5;
    case 7:
      return in_polygon(kSquare, p);
    case 8:
      return in_polygon(star, p);
    default:
      return in_polygon(kTriangle, p);
  }
}

// The placement of a shape in the picture, whose coordinates run from -1 to 1.
struct Placement {
  ShapePoint center;
  double scale = 1, stretch = 1, cos = 1, sin = 0;

  ShapePoint to_shape(ShapePoint p) const {
    const double x = (p.x - center.x) / scale, y = (p.y - center.y) / scale;
    return {(cos * x + sin * y) * stretch, (cos * y - sin * x) / stretch};
  }
};

Placement draw_placement(ShapeDraws& draws, double scale, double room) {
  Placement place;
  place.scale = scale;
  place.center = {draws.uniform(-room, room), draws.uniform(-room, room)};
  place.stretch = draws.uniform(0.87, 1.15);
  const double angle = draws.uniform(0, 2 * kPi);
  place.cos = std::cos(angle);
  place.sin = std::sin(angle);
  return place;
}

// A small distractor: a stroke or a bit of a square, never one of the classes as a whole.
struct Clutter {
  Placement place;
  double width = 1;
  Color color;
  bool covers = false;  // drawn over the shape, not under it

  bool inside(ShapePoint p) const {
    const ShapePoint q = place.to_shape(p);
    return std::abs(q.x) < 1 && std::abs(q.y) < width;
  }
};

struct Scene {
  int label = 0;
  Texture ground, fill;
  Placement place;
  std::vector<Clutter> clutter;
  double light_x = 0, light_y = 0;  // brightness ramps
  double noise = 0;                 // standard deviation, grey levels
};

Scene draw_scene(ShapeDraws& draws, int label) {
  Scene scene;
  scene.label = label;
  scene.ground = draw_texture(draws, 0.45);
  // The fill must differ from the ground; how it differs is random.
  do {
    scene.fill = draw_texture(draws, 0.35);
  } while (distance(mix(scene.fill.a, scene.fill.b, 0.5),
                    mix(scene.ground.a, scene.ground.b, 0.5)) < 0.45);
  const double scale = draws.uniform(0.58, 0.9);
  scene.place = draw_placement(draws, scale, 1.0 - scale);
  scene.clutter.resize(2 + draws.below(5));
  for (Clutter& item : scene.clutter) {
    item.covers = draws.below(4) == 0;
    item.place = draw_placement(draws, draws.uniform(0.12, 0.45), 1.0);
    item.width = item.covers ? 0.15 : draws.uniform(0.15, 0.6);
    item.color = draws.color();
  }
  scene.light_x = draws.uniform(-0.2, 0.2);
  scene.light_y = draws.uniform(-0.2, 0.2);
  scene.noise = draws.uniform(2, 12);
  return scene;
}

Color color_at(const Scene& scene, ShapePoint p) {
  Color color = scene.ground.at(p);
  for (const Clutter& item : scene.clutter) {
    if (!item.covers && item.inside(p)) color = item.color;
  }
  const ShapePoint q = scene.place.to_shape(p);
  if (in_shape(scene.label, q)) color = scene.fill.at(q);
  for (const Clutter& item : scene.clutter) {
    if (item.covers && item.inside(p)) color = item.color;
  }
  return color;
}

uint8_t to_byte(double level) { return static_cast<uint8_t>(std::clamp(level + 0.5, 0.0, 255.0)); }

}  // namespace

const std::vector<std::string>& shape_names() {
  static const std::vector<std::string> names = {"arrow", "bowtie",  "crescent", "cross",
                                                 "disc",  "heart",   "ring",     "square",
                                                 "star",  "triangle"};
  return names;
}

void paint_shape(uint64_t seed, int64_t split, int64_t index, MutableImageView out) {
  constexpr int kSubpixels = 3;  // per side: smooth edges
  ShapeDraws draws(RandomKey(seed, split, index));
  const Scene scene = draw_scene(draws, static_cast<int>(index % 10));
  for (int y = 0; y < out.height; ++y) {
    uint8_t* row = out.data + y * out.stride_bytes;
    for (int x = 0; x < out.width; ++x) {
      Color sum;
      for (int i = 0; i < kSubpixels * kSubpixels; ++i) {
        const double px = x + (i % kSubpixels + 0.5) / kSubpixels;
        const double py = y + (i / kSubpixels + 0.5) / kSubpixels;
        const Color c = color_at(scene, {2 * px / out.width - 1, 2 * py / out.height - 1});
        sum = {sum.r + c.r, sum.g + c.g, sum.b + c.b};
      }
      const double light = 1 + scene.light_x * (2.0 * x / out.width - 1) +
                           scene.light_y * (2.0 * y / out.height - 1);
      const double gain = 255 * light / (kSubpixels * kSubpixels);
      row[3 * x] = to_byte(sum.r * gain + scene.noise * draws.normal());
      row[3 * x + 1] = to_byte(sum.g * gain + scene.noise * draws.normal());
      row[3 * x + 2] = to_byte(sum.b * gain + scene.noise * draws.normal());
    }
  }
}

}  // namespace stoker
