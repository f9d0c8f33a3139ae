// Shared by the fuzz targets of annotations: reads all of a set, and checks that what it gives out
// as fine is safe to use.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>

#include "pipeline/annotation/run_lengths.h"
#include "pipeline/source/annotated/annotation_set.h"

namespace stoker {

inline void check_fuzz_object(const AnnotationInfo& info, const Annotations& annotations,
                              size_t place) {
  const AnnotatedObject& object = annotations.objects[place];
  const auto must = [](bool holds) {
    if (!holds) std::abort();
  };
  must(object.index == static_cast<int32_t>(place));
  must(object.box[2] >= object.box[0] && object.box[3] >= object.box[1]);
  must(object.label >= 0 && object.area >= 0);
  must(info.class_names.empty() || object.label < std::ssize(info.class_names));
  const MaskShape& mask = object.mask;
  if (mask.kind == MaskKind::runs) {
    const auto runs = std::span(annotations.runs).subspan(mask.first, mask.count);
    must(check_runs(runs, annotations.size).empty());
  }
  if (mask.kind != MaskKind::polygons) return;
  for (uint32_t i = mask.first; i < mask.first + mask.count; ++i) {
    const Polygon& polygon = annotations.polygons.at(i);
    must(polygon.count >= 3 && polygon.first + polygon.count <= annotations.points.size());
  }
}

inline void check_fuzz_set(const AnnotationSet& set) {
  constexpr int64_t kMostRead = 1000;
  Annotations found;
  for (int64_t i = 0; i < std::min(set.pictures(), kMostRead); ++i) {
    if (set.find(set.name(i)) >= set.pictures()) std::abort();
    if (!set.read(i, found).empty()) continue;
    const AnnotationInfo& info = set.info();
    const size_t objects = found.objects.size();
    if (found.keypoints.size() != objects * static_cast<size_t>(info.keypoints)) std::abort();
    if (found.corners.size() != (info.rotated ? objects : 0)) std::abort();
    for (size_t k = 0; k < objects; ++k) check_fuzz_object(info, found, k);
  }
}

}  // namespace stoker
