#include "pipeline/augment/program.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "decode/pixel/colour.h"
#include "pipeline/augment/pixel_steps.h"

namespace stoker {
namespace {

bool makes_image(const PixelStep& step) {
  return step.kind->make != nullptr || step.kind == &kResizeStep;
}

// The number of the last of `steps` that makes an image, plus 1; 0: none does.
size_t last_that_makes(std::span<const PixelStep> steps) {
  size_t last = steps.size();
  while (last > 0 && !makes_image(steps[last - 1])) --last;
  return last;
}

bool is_border(const PixelStep& step) {
  return step.kind == &kPadStep && static_cast<Padding>(step.choice) == Padding::constant;
}

// The part of `padded` that is not the border.
Box inside_of(MutableImageView padded, const PixelStep& border) {
  const auto side = [&](size_t i) { return static_cast<int>(border.values[i]); };
  const int left = side(0), top = side(1), right = side(2), bottom = side(3);
  return {left, top, padded.width - left - right, padded.height - top - bottom};
}

MutableImageView inner_view(MutableImageView image, Box box) {
  return {image.data + box.y * image.stride_bytes + ptrdiff_t{3} * box.x, box.width, box.height,
          image.stride_bytes};
}

void fill_border(const PixelStep& border, MutableImageView padded) {
  const Box inside = inside_of(padded, border);
  const int right = inside.x + inside.width, bottom = inside.y + inside.height;
  fill_box(padded, {0, 0, padded.width, inside.y}, border.fill);
  fill_box(padded, {0, inside.y, inside.x, inside.height}, border.fill);
  fill_box(padded, {right, inside.y, padded.width - right, inside.height}, border.fill);
  fill_box(padded, {0, bottom, padded.width, padded.height - bottom}, border.fill);
}

// Puts steps into a plan, one after the other, until one does not fit.
class Planner {
 public:
  explicit Planner(const Draws& draws) : steps_(draws.steps()) {
    const Size source = draws.source();
    plan_.crop.crop = plan_.crop.window = {0, 0, source.width, source.height};
    plan_.crop.resized = source;
  }

  DecodePlan plan() {
    while (plan_.steps < steps_.size()) {
      const size_t taken = take(steps_[plan_.steps]);
      if (taken == 0) break;
      plan_.steps += taken;
    }
    plan_.crop.flip = plan_.flip && !shifted_;
    return plan_;
  }

 private:
  // Returns how many steps were taken.
  size_t take(const PixelStep& step) {
    if (is_of_objects(step.kind->motion)) return 1;
    if (step.kind == &kFlipStep) {
      plan_.flip = !plan_.flip;
      return 1;
    }
    if (shifted_) return 0;
    if (step.kind == &kCropStep) return take_crop(crop_box(step));
    // Nearest and box round halves to one side, which a mirror exchanges.
    if (plan_.flip) return 0;
    if (step.kind == &kResizeStep) return take_resize(step);
    if (step.kind == &kPadStep) return take_shift(step);
    return 0;
  }

  size_t take_crop(Box box) {
    Box& window = plan_.crop.window;
    if (plan_.flip) box.x = window.width - box.x - box.width;
    window = {window.x + box.x, window.y + box.y, box.width, box.height};
    if (!resized_) {
      Box& crop = plan_.crop.crop;
      crop = {crop.x + window.x, crop.y + window.y, box.width, box.height};
      plan_.crop.resized = {box.width, box.height};
      window = {0, 0, box.width, box.height};
    }
    return 1;
  }

  size_t take_resize(const PixelStep& step) {
    if (resized_) return 0;
    resized_ = true;
    plan_.crop.resized = step.size;
    plan_.crop.window = {0, 0, step.size.width, step.size.height};
    plan_.crop.filter = static_cast<Filter>(step.choice);
    return 1;
  }

  // Padding and a crop to the size before are a shift.
  size_t take_shift(const PixelStep& pad) {
    const Box window = plan_.crop.window;
    const auto padding = static_cast<Padding>(pad.choice);
    const bool zero = padding == Padding::constant && pad.fill == Rgb{};
    if (!zero && padding != Padding::reflect) return 0;
    if (plan_.steps + 1 == steps_.size()) return 0;
    const PixelStep& next = steps_[plan_.steps + 1];
    if (next.kind != &kCropStep || next.size != Size{window.width, window.height}) return 0;
    const Box box = crop_box(next);
    plan_.shift_x = box.x - static_cast<int>(pad.values[0]);
    plan_.shift_y = box.y - static_cast<int>(pad.values[1]);
    plan_.padding = zero ? PadMode::zero : PadMode::reflect;
    shifted_ = plan_.is_shifted();
    return 2;
  }

  std::span<const PixelStep> steps_;
  DecodePlan plan_;
  bool resized_ = false, shifted_ = false;
};

}  // namespace

DecodePlan plan_decode(const Draws& draws) { return Planner(draws).plan(); }

namespace {

// Whether the pixels that a step shows are found by walking its motion back.
bool is_followed(const PixelStep& step) {
  switch (step.kind->motion) {
    case Motion::crop:
    case Motion::flip:
    case Motion::vertical_flip:
    case Motion::affine:
      return true;
    case Motion::none:
      return step.kind->table != nullptr;
    default:
      return is_of_objects(step.kind->motion);
  }
}

// The pixels that an affine step reads for a part of its output: those around the places of the
// part's corners, as many as the widest filter takes, and one for rounding.
Box read_by_affine(const PixelStep& step, Box part, Size before) {
  constexpr int kMargin = 3;
  const auto [a, b, c, d, e, f, g, h] = step.values;
  double left = before.width, top = before.height, right = 0, bottom = 0;
  for (const double x : {part.x + 0.5, part.x + part.width - 0.5}) {
    for (const double y : {part.y + 0.5, part.y + part.height - 0.5}) {
      const double from_x = a * x + b * y + c, from_y = d * x + e * y + f;
      left = std::min(left, from_x);
      right = std::max(right, from_x);
      top = std::min(top, from_y);
      bottom = std::max(bottom, from_y);
    }
  }
  const auto inside = [](double at, int side) {
    return static_cast<int>(std::clamp(at, 0.0, double(side)));
  };
  const int x = inside(std::floor(left) - kMargin, before.width);
  const int y = inside(std::floor(top) - kMargin, before.height);
  return {x, y, inside(std::ceil(right) + kMargin, before.width) - x,
          inside(std::ceil(bottom) + kMargin, before.height) - y};
}

Box read_by(const PixelStep& step, Box part, Size before) {
  switch (step.kind->motion) {
    case Motion::crop: {
      const Box crop = crop_box(step);
      return {part.x + crop.x, part.y + crop.y, part.width, part.height};
    }
    case Motion::flip:
      return {before.width - part.x - part.width, part.y, part.width, part.height};
    case Motion::vertical_flip:
      return {part.x, before.height - part.y - part.height, part.width, part.height};
    case Motion::affine:
      return read_by_affine(step, part, before);
    default:
      return part;
  }
}

}  // namespace

Box seen_part(std::span<const PixelStep> steps, Size size) {
  const auto size_before = [&](size_t i) { return i == 0 ? size : steps[i - 1].size; };
  size_t followed = 0;
  while (followed < steps.size() && is_followed(steps[followed])) ++followed;
  const Size last = size_before(followed);
  Box part{0, 0, last.width, last.height};
  for (size_t i = followed; i > 0 && part.width > 0 && part.height > 0; --i) {
    part = read_by(steps[i - 1], part, size_before(i - 1));
  }
  return part;
}

MutableImageView StepRunner::memory(size_t which, Size size) {
  ScratchVector<uint8_t>& pixels = images_[which];
  if (pixels.size() < image_bytes(size)) pixels.resize(image_bytes(size));
  return {pixels.data(), size.width, size.height, ptrdiff_t{3} * size.width};
}

MutableImageView StepRunner::begin(std::span<const PixelStep> steps, Size size,
                                   MutableImageView out, std::string& problem) {
  steps_ = steps;
  out_ = out;
  next_ = 0;
  last_made_ = last_that_makes(steps);
  border_ = 0;
  inner_ = out;
  if (last_made_ > 0 && is_border(steps[last_made_ - 1])) {
    border_ = last_made_;
    inner_ = inner_view(out, inside_of(out, steps[border_ - 1]));
    last_made_ = last_that_makes(steps.first(border_ - 1));
  }
  image_ = inner_;
  if (last_made_ == 0) return image_;
  const auto check = [&](Size each) {
    if (int64_t{each.width} * each.height <= max_pixels_) return;
    problem = "augment: an image of " + std::to_string(each.width) + " x " +
              std::to_string(each.height) + " pixels on the way; at most " +
              std::to_string(max_pixels_) + " are made";
  };
  check(size);
  for (const PixelStep& step : steps) check(step.size);
  if (problem.empty()) image_ = memory(next_, size);
  return image_;
}

void StepRunner::run() {
  for (size_t i = 0; i < steps_.size();) {
    const PixelStep& step = steps_[i];
    const bool joined = i + 1 < steps_.size() && step.kind->table && steps_[i + 1].kind->table;
    if (joined || (step.kind->table && !step.kind->change)) {
      i = join_tables(i);
      continue;
    }
    if (is_cropped_warp(i)) {
      i += 2;
      make_cropped(step, steps_[i - 1],
                   i == last_made_ ? inner_ : memory(next_ ^= 1, steps_[i - 1].size));
      continue;
    }
    ++i;
    if (is_of_objects(step.kind->motion) || blend(step)) continue;
    if (step.kind->change) {
      step.kind->change(step, image_, scratch_);
    } else if (i == border_) {
      fill_border(step, out_);
      image_ = out_;
    } else {
      make(step, i == last_made_ ? inner_ : memory(next_ ^= 1, step.size));
    }
  }
}

void StepRunner::make(const PixelStep& step, MutableImageView out) {
  if (step.kind == &kResizeStep) {
    const Box whole{0, 0, image_.width, image_.height};
    const Box window{0, 0, step.size.width, step.size.height};
    resize_.run(image_, {whole, step.size, window, false, static_cast<Filter>(step.choice)}, out);
  } else {
    step.kind->make(step, image_, out, scratch_);
  }
  image_ = out;
}

// Whether the next step shows a part of this one's pixels: the others are not made.
bool StepRunner::is_cropped_warp(size_t step) const {
  return step + 1 < steps_.size() && steps_[step].kind == &kAffineStep &&
         static_cast<Interpolation>(steps_[step].choice) != Interpolation::nearest &&
         steps_[step + 1].kind == &kCropStep;
}

void StepRunner::make_cropped(const PixelStep& warp, const PixelStep& crop, MutableImageView out) {
  std::array<double, 6> matrix;
  std::copy_n(warp.values.begin(), matrix.size(), matrix.begin());
  const Box box = crop_box(crop);
  warp_affine(image_, matrix, static_cast<Interpolation>(warp.choice), warp.fill, out, box.x,
              box.y);
  image_ = out;
}

// Runs the steps of AugMix, in 32-bit floats as torchvision and timm. Returns false for all others.
bool StepRunner::blend(const PixelStep& step) {
  const bool begins = step.kind == &kBlendBeginStep, ends = step.kind == &kBlendEndStep;
  const bool over = step.kind == &kBlendOverStep;
  if (!begins && !ends && !over && step.kind != &kBlendStep) return false;
  const auto weight = static_cast<float>(step.values[0]);
  const size_t row = size_t{3} * static_cast<size_t>(image_.width);
  const size_t bytes = row * static_cast<size_t>(image_.height);
  if (begins) kept_.resize(bytes), sum_.resize(bytes);
  for (int y = 0; y < image_.height; ++y) {
    uint8_t* line = image_.data + y * image_.stride_bytes;
    float* sum = sum_.data() + static_cast<size_t>(y) * row;
    uint8_t* kept = kept_.data() + static_cast<size_t>(y) * row;
    if (begins) {
      std::copy_n(line, row, kept);
      for (size_t i = 0; i < row; ++i) sum[i] = weight * static_cast<float>(line[i]);
    } else if (ends) {
      // Rounding may take a sum of 255 a little above it.
      for (size_t i = 0; i < row; ++i) line[i] = static_cast<uint8_t>(std::min(sum[i], 255.0f));
    } else if (over) {
      for (size_t i = 0; i < row; ++i) {
        const int own = kept[i], other = static_cast<uint8_t>(std::min(sum[i], 255.0f));
        const float blended = static_cast<float>(own) + weight * static_cast<float>(other - own);
        line[i] = static_cast<uint8_t>(blended);
      }
    } else {
      for (size_t i = 0; i < row; ++i) sum[i] += weight * static_cast<float>(line[i]);
      std::copy_n(kept, row, line);
    }
  }
  return true;
}

// Tables one after the other are one table. Returns the number of the step after them.
size_t StepRunner::join_tables(size_t first) {
  ByteTable joined, next;
  steps_[first].kind->table(steps_[first], joined);
  for (++first; first < steps_.size() && steps_[first].kind->table; ++first) {
    steps_[first].kind->table(steps_[first], next);
    joined = composed(joined, next);
  }
  apply_table(image_, joined);
  return first;
}

int64_t StepRunner::scratch_bytes() const {
  return resize_.scratch_bytes() + static_cast<int64_t>(scratch_.bytes()) +
         static_cast<int64_t>(images_[0].capacity() + images_[1].capacity() + kept_.capacity() +
                              sum_.capacity() * sizeof(float));
}

}  // namespace stoker
