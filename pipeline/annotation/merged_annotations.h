// Puts what lies on several moved pictures onto one canvas, as if that were a picture of its own:
// boxes, rotated boxes and keypoints at the pictures' places, masks as run lengths of the canvas,
// label images side by side. Owner: one per thread, reused. Threads: one at a time. REQUIRES: masks
// are of their picture's size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decode/label_image.h"
#include "pipeline/annotation/annotations.h"
#include "pipeline/annotation/mask_mover.h"
#include "pipeline/annotation/object_mover.h"

namespace stoker {

// Says what lies on a picture after its motions.
struct MovedAnnotations {
  const Annotations& given;  // before them
  const ObjectMover& objects;
  MaskMover* masks = nullptr;  // with the same motions; null: nobody wants masks
};

class MergedAnnotations {
 public:
  // Begins a canvas; `out` is what add() appends to.
  void begin(Size canvas, Annotations& out);
  // Adds the objects of a picture whose upper left corner is at (x, y). `chosen`: the places of
  // those that are taken, of MovedAnnotations::objects; null: all.
  void add(const MovedAnnotations& picture, int x, int y,
           const std::vector<int32_t>* chosen = nullptr);
  // From now on, objects of pictures at (0, 0) are covered by these, whose masks `cover` gets as
  // bits (MaskForm::bits): their masks end there, their boxes are those of what is left, and who is
  // covered as a whole is dropped. REQUIRES: the picture has the canvas's size.
  void cover(const MovedAnnotations& picture, const std::vector<int32_t>& chosen,
             std::vector<std::byte>& cover);
  void uncover() { cover_ = {}; }

 private:
  void make_mask(const MovedAnnotations& picture, const AnnotatedObject& object);
  bool cut_mask();
  bool place_mask(const MovedAnnotations& picture, int x, int y, AnnotatedObject& object);
  void append(const MovedAnnotations& picture, size_t place, int x, int y,
              const AnnotatedObject& object);

  Size canvas_;
  Annotations* out_ = nullptr;
  std::span<const std::byte> cover_;
  std::vector<std::byte> mask_;  // bits of one object
};

// Begins a label image: one label everywhere.
void begin_labels(Size size, int label_bytes, int32_t label, LabelImage& out);
// Copies the labels of a picture to its place on a canvas of the same type. REQUIRES: it lies
// inside.
void place_labels(const LabelImage& picture, int x, int y, LabelImage& canvas);

}  // namespace stoker
