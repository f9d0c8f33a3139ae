#include "pipeline/source/annotated/annotation_code.h"

#include <bit>
#include <cmath>

namespace stoker {
namespace {

// Differences of two such numbers of hundredths need no care.
constexpr double kMostHundredths = 1e15;
// In place of a difference, which is even.
constexpr uint64_t kAllBits = 1;

// Returns the number of hundredths that `value` is; false if it is none.
bool is_hundredths(double value, int64_t& hundredths) {
  const double scaled = value * 100;
  if (!(std::abs(scaled) < kMostHundredths)) return false;
  hundredths = std::llround(scaled);
  return std::bit_cast<uint64_t>(static_cast<double>(hundredths) / 100) ==
         std::bit_cast<uint64_t>(value);
}

void put_polygons(const Annotations& from, const MaskShape& mask, CodeWriter& out) {
  int64_t x = 0, y = 0;
  for (uint32_t i = 0; i < mask.count; ++i) {
    const Polygon& polygon = from.polygons[mask.first + i];
    out.put_count(polygon.count);
    for (uint32_t k = 0; k < polygon.count; ++k) {
      const auto& point = from.points[polygon.first + k];
      out.put_number(point[0], x);
      out.put_number(point[1], y);
    }
  }
}

void get_polygons(CodeReader& in, Annotations& to, MaskShape& mask) {
  mask.first = static_cast<uint32_t>(to.polygons.size());
  int64_t x = 0, y = 0;
  for (uint32_t i = 0; i < mask.count && in.ok(); ++i) {
    const auto count = static_cast<uint32_t>(in.get_length());
    to.polygons.push_back({static_cast<uint32_t>(to.points.size()), count});
    for (uint32_t k = 0; k < count && in.ok(); ++k) {
      const double point_x = in.get_number(x);
      to.points.push_back({point_x, in.get_number(y)});
    }
  }
}

void get_runs(CodeReader& in, Annotations& to, MaskShape& mask) {
  mask.first = static_cast<uint32_t>(to.runs.size());
  for (uint32_t i = 0; i < mask.count && in.ok(); ++i) {
    to.runs.push_back(static_cast<uint32_t>(in.get_count()));
  }
}

}  // namespace

void CodeWriter::put_number(double value, int64_t& last) {
  int64_t hundredths = 0;
  if (is_hundredths(value, hundredths)) {
    put_count(folded_sign(hundredths - last) << 1);
    last = hundredths;
    return;
  }
  put_count(kAllBits);
  const auto bits = std::bit_cast<uint64_t>(value);
  for (int shift = 0; shift < 64; shift += 8) out_ += static_cast<char>(bits >> shift);
}

double CodeReader::get_number(int64_t& last) {
  const uint64_t code = get_count();
  if (code != kAllBits) {
    // In unsigned numbers, whose sums may be anything.
    last = static_cast<int64_t>(static_cast<uint64_t>(last) + unfolded_sign(code >> 1));
    return static_cast<double>(last) / 100;
  }
  if (end_ - at_ < 8) {
    fail();
    return 0;
  }
  uint64_t bits = 0;
  for (int shift = 0; shift < 64; shift += 8)
    bits |= uint64_t{static_cast<uint8_t>(*at_++)} << shift;
  return std::bit_cast<double>(bits);
}

void put_object(const AnnotationInfo& info, const Annotations& from, size_t place,
                CodeWriter& out) {
  const AnnotatedObject& object = from.objects[place];
  const MaskShape& mask = object.mask;
  out.put_count(static_cast<uint64_t>(mask.kind) << 1 | static_cast<uint64_t>(object.is_crowd));
  out.put_whole(object.label);
  out.put_whole(object.id);
  int64_t none = 0;
  for (const double side : object.box) out.put_number(side, none = 0);
  out.put_number(object.area, none = 0);
  if (info.rotated) {
    for (const double corner : from.corners[place]) out.put_number(corner, none = 0);
  }
  const auto points = static_cast<size_t>(info.keypoints);
  for (size_t i = place * points; i < (place + 1) * points; ++i) {
    const Keypoint& point = from.keypoints[i];
    for (const double value : {point.x, point.y, point.visibility}) out.put_number(value, none = 0);
  }
  if (mask.kind == MaskKind::none) return;
  out.put_count(mask.count);
  if (mask.kind == MaskKind::polygons) return put_polygons(from, mask, out);
  for (uint32_t i = 0; i < mask.count; ++i) out.put_count(from.runs[mask.first + i]);
}

void get_object(const AnnotationInfo& info, CodeReader& in, Annotations& to) {
  AnnotatedObject object;
  const uint64_t kind = in.get_count();
  if (kind >> 1 > static_cast<uint64_t>(MaskKind::runs)) return in.fail();
  object.is_crowd = (kind & 1) != 0;
  object.mask.kind = static_cast<MaskKind>(kind >> 1);
  object.label = in.get_whole();
  object.id = in.get_whole();
  int64_t none = 0;
  for (double& side : object.box) side = in.get_number(none = 0);
  object.area = in.get_number(none = 0);
  if (info.rotated) {
    for (double& corner : to.corners.emplace_back()) corner = in.get_number(none = 0);
  }
  for (int i = 0; i < info.keypoints && in.ok(); ++i) {
    Keypoint& point = to.keypoints.emplace_back();
    for (double* value : {&point.x, &point.y, &point.visibility}) *value = in.get_number(none = 0);
  }
  if (object.mask.kind != MaskKind::none) {
    object.mask.count = static_cast<uint32_t>(in.get_length());
    if (object.mask.kind == MaskKind::polygons) get_polygons(in, to, object.mask);
    if (object.mask.kind == MaskKind::runs) get_runs(in, to, object.mask);
  }
  object.index = static_cast<int32_t>(to.objects.size());
  to.objects.push_back(object);
}

}  // namespace stoker
