// The augmentation of one sample, with every number decided: a list of steps, each an
// operation of Pillow's. Stages (stage.h) draw it, program.h runs it, and step_text() shows it.
// A function of the list, the size of the source image, and (seed, epoch, sample), so that it is
// not stored with a row but drawn again for whoever asks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "decode/image.h"
#include "decode/pixel/colour.h"
#include "decode/pixel/scratch.h"
#include "decode/pixel/warp.h"
#include "pipeline/annotation/motion.h"
#include "pipeline/annotation/object_mover.h"
#include "pipeline/random/random_key.h"

namespace stoker {

struct PixelStep;
class StageList;

// A kind of step: its name, the names of its numbers, and the function that runs it. There is one
// constant of it for each operation on pixels, which the steps point to. Threads: any.
struct PixelKind {
  const char* name = "";
  std::array<const char*, 8> values{};  // the names of PixelStep::values; the rest is null
  const char* choice = nullptr;  // the name of PixelStep::choice, and the names of its values
  std::span<const char* const> choices{};
  bool fill = false;  // PixelStep::fill counts
  // Where the pixels go. The first of PixelStep::values are the motion's numbers.
  Motion motion = Motion::none;

  // One of these is there, or none for the steps that program.h runs itself and those that change
  // no pixel; a table may have a change beside it that is faster alone.
  // Changes the pixels in place.
  void (*change)(const PixelStep& step, MutableImageView image, PixelScratch& scratch) = nullptr;
  // Makes an image of step.size from another. REQUIRES: no overlap.
  void (*make)(const PixelStep& step, ImageView image, MutableImageView out,
               PixelScratch& scratch) = nullptr;
  // Gives the table by which every byte is replaced, in all channels. Neighbours are joined.
  void (*table)(const PixelStep& step, ByteTable& table) = nullptr;
};

struct PixelStep {
  const PixelKind* kind = nullptr;
  Size size;  // of the image after the step
  std::array<double, 8> values{};
  uint8_t choice = 0;
  Rgb fill{};
  const void* object = nullptr;  // what the kind needs beside numbers; outlives the step
  RandomKey key = {0, 0, 0};     // for steps that draw while they run (noise)
};

// The steps of one sample while they are drawn; reused, keeps its memory. Threads: one at a time.
class Draws {
 public:
  // Says what lies on the images of the next begin()s, and how many keypoints each object has. It
  // outlives these draws; null: nothing.
  void carry(const Annotations* annotations, int keypoints);
  // `source` is the image's size, sides >= 1; `output` that of a finished row.
  void begin(Size source, Size output, uint64_t seed, int64_t epoch, int64_t sample);
  // The same for one of several pictures of the sample: `seed` is the picture's, `shared_seed` that
  // of all of them.
  void begin_picture(Size source, Size output, uint64_t seed, uint64_t shared_seed, int64_t epoch,
                     int64_t sample);

  Size size() const { return steps_.empty() ? source_ : steps_.back().size; }  // of the image now
  Size source() const { return source_; }
  Size output() const { return output_; }
  // The key of this sample whose seed is mixed with `salt`; 0: the sample's own.
  RandomKey key(uint64_t salt) const { return {seed_ ^ salt, epoch_, sample_}; }
  // The same in another epoch.
  RandomKey key_of_epoch(uint64_t salt, int64_t epoch) const {
    return {seed_ ^ salt, epoch, sample_};
  }
  int64_t epoch() const { return epoch_; }
  bool has_objects() const { return carried_ != nullptr; }
  // The carried objects, where they are after the steps that there are.
  const ObjectMover& objects();
  std::span<const AnnotatedObject> boxes() { return objects().objects(); }

  // Appends a step that keeps the image's size, or makes it `size`.
  PixelStep& add(const PixelKind& kind, std::initializer_list<double> values = {}) {
    return add(kind, size(), values);
  }
  PixelStep& add(const PixelKind& kind, Size size, std::initializer_list<double> values = {}) {
    if (kind.motion == Motion::unknown && carried_) fail_to_move(kind);
    PixelStep& step = steps_.emplace_back(PixelStep{.kind = &kind, .size = size});
    std::copy(values.begin(), values.end(), step.values.begin());
    return step;
  }
  // Notes that this sample cannot be augmented so, and why: it is a bad sample.
  void fail(const std::string& why) { failure_ = why; }
  // Draws stages with the numbers that they have for all pictures of the sample.
  void draw_shared(const StageList& stages, uint64_t salt);
  // The image's sizes before and after each draw_shared().
  std::span<const Size> shared_sizes() const { return shared_sizes_; }

  std::span<const PixelStep> steps() const { return steps_; }
  Movement movement(size_t step) const;
  const std::string& failure() const { return failure_; }  // "": none
  int64_t bytes() const { return static_cast<int64_t>(steps_.capacity() * sizeof(PixelStep)); }

 private:
  void fail_to_move(const PixelKind& kind);

  const Annotations* carried_ = nullptr;
  int keypoints_ = 0;
  ObjectMover objects_;
  size_t moved_ = 0;       // the steps that objects_ has done
  bool is_begun_ = false;  // objects_ has the objects of this sample
  Size source_, output_;
  uint64_t seed_ = 0, shared_seed_ = 0;
  int64_t epoch_ = 0, sample_ = 0;
  std::vector<Size> shared_sizes_;
  std::vector<PixelStep> steps_;
  std::string failure_;
};

// "solarize(threshold=128)": in the grammar of augmentations.
std::string step_text(const PixelStep& step);
// "crop(x=3, y=5, width=111, height=77) | resize(...) | flip"
std::string steps_text(std::span<const PixelStep> steps);

}  // namespace stoker
