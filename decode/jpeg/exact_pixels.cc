#include "decode/jpeg/exact_pixels.h"

#include <algorithm>

namespace stoker {
namespace {

// The rows of chroma in a strip if chroma has half the rows.
constexpr int kHalfStrip = kStripRows / 2;

// A strip needs the first row of chroma after it.
constexpr int kStripsKept = 2;

Upsampling upsampling_by(bool halves) {
  return halves ? Upsampling::triangle : Upsampling::replicate;
}

}  // namespace

// Returns false if the sampling is not one of the usual ones, or if there are too few columns for
// fancy upsampling.
bool ExactPixels::plan_chroma(const JpegFrame& jpeg) {
  planes_ = jpeg.component_count;
  halves_across_ = halves_down_ = false;
  if (planes_ == 1) return true;
  const JpegComponent& luma = jpeg.components[0];
  const JpegComponent& cb = jpeg.components[1];
  const JpegComponent& cr = jpeg.components[2];
  if (luma.across != jpeg.max_across || luma.down != jpeg.max_down || cb.across != cr.across ||
      cb.down != cr.down) {
    return false;
  }
  chroma_ = cb.size;
  halves_across_ = luma.across == 2 * cb.across;
  halves_down_ = luma.down == 2 * cb.down;
  const ComponentUpsampling upsampling = upsampling_of(jpeg, cb);
  return (halves_across_ || luma.across == cb.across) && (halves_down_ || luma.down == cb.down) &&
         upsampling.across == upsampling_by(halves_across_) &&
         upsampling.down == upsampling_by(halves_down_);
}

void ExactPixels::find_mcus(const JpegFrame& jpeg) {
  NeededSamples needed;
  needed.across[0] = columns_;
  needed.down[0] = rows_down_;
  const int across = halves_across_ ? 2 : 1, down = halves_down_ ? 2 : 1;
  chroma_columns_ = {columns_.begin / across, (columns_.end - 1) / across + 1};
  for (int c = 1; c < planes_; ++c) {
    needed.across[c] = samples_of(columns_, across, upsampling_by(halves_across_), chroma_.width);
    needed.down[c] = samples_of(rows_down_, down, upsampling_by(halves_down_), chroma_.height);
  }
  samples_.plan(jpeg, mcus_of(jpeg, needed));
  checked_rows_ = checked_mcu_rows(jpeg, rows_down_.end - 1, mcus());
}

bool ExactPixels::reserve() {
  for (int c = 0; c < planes_; ++c) samples_.add_plane(0, kStripsKept);
  const int samples = chroma_columns_.end - chroma_columns_.begin;
  const size_t pixels = static_cast<size_t>(samples) * (halves_across_ ? 2 : 1);
  const auto needs = passes_.needs(planes_);
  return samples_.reserve(kMaxPlaneScratch,
                          BufferNeed{&chroma_sums_, planes_ == 1 ? 0 : colour_scratch(samples)},
                          BufferNeed{&colours_, planes_ == 1 ? 0 : 3 * pixels * kStripRows},
                          needs[0], needs[1], needs[2]);
}

bool ExactPixels::plan(const JpegFrame& jpeg, const CropSpec& spec) {
  if (!plan_chroma(jpeg)) return false;
  passes_.plan(spec);
  crop_ = {spec.crop.x, spec.crop.y};
  columns_ = {spec.crop.x + passes_.columns().begin, spec.crop.x + passes_.columns().end};
  rows_down_ = {spec.crop.y + passes_.rows().begin, spec.crop.y + passes_.rows().end};
  find_mcus(jpeg);
  return reserve();
}

void ExactPixels::begin(MutableImageView out) {
  strips_done_ = 0;
  passes_.begin(samples_.plane(0).first.height - crop_.height, out);
}

bool ExactPixels::finish_row(int row, RowSlot slot) { return samples_.finish_row(row, slot); }

// Returns how many rows of pixels can be made after this row of MCUs, counted from the first
// strip's.
int ExactPixels::whole_rows(int row) const {
  const int luma = (row + 1) * samples_.plane(0).down * 8;
  return halves_down_ ? luma - 1 : luma;
}

// Repeats the first and the last row of chroma, as libjpeg does at the edges.
void ExactPixels::repeat_edge_rows(int strip) {
  const auto copy_row = [&](int c, int from, int to) {
    const uint8_t* source = samples_.strip(c, from / kStripRows) + from % kStripRows;
    uint8_t* target = samples_.strip(c, to / kStripRows) + to % kStripRows;
    const SamplePlane& plane = samples_.plane(c);
    for (int x = 0; x < plane.columns * kStripRows; x += kStripRows) target[x] = source[x];
  };
  for (int c = 1; c < planes_; ++c) {
    const int first = samples_.plane(c).first.height;
    const int behind = chroma_.height - first;
    if (strip == 0 && first == 0) copy_row(c, 0, kStripsKept * kStripRows - 1);
    if (behind > strip * kHalfStrip && behind <= (strip + 1) * kHalfStrip) {
      copy_row(c, behind - 1, behind);
    }
  }
}

// Returns the sixteen rows of chroma with this number, at the first of the needed columns.
const uint8_t* ExactPixels::chroma_rows(int c, int group) {
  constexpr int kGroups = kStripsKept * 2;
  const int kept = (group + kGroups) % kGroups;
  const int column = chroma_columns_.begin - samples_.plane(c).first.width;
  return samples_.strip(c, kept / 2) + kept % 2 * kHalfStrip + ptrdiff_t{column} * kStripRows;
}

// Returns the first of the strip's needed columns.
const uint8_t* ExactPixels::make_colours(int strip) {
  const int across = halves_across_ ? 2 : 1;
  const int first_column = chroma_columns_.begin * across - samples_.plane(0).first.width;
  const uint8_t* luma = samples_.strip(0, strip) + ptrdiff_t{first_column} * kStripRows;
  if (planes_ == 1) return luma;
  if (halves_down_) repeat_edge_rows(strip);
  ColourStrip from;
  from.luma = luma;
  from.samples = chroma_columns_.end - chroma_columns_.begin;
  from.halves_across = halves_across_;
  from.halves_down = halves_down_;
  const SamplePlane& plane = samples_.plane(1);
  const int end = plane.first.width + mcus().width * plane.across * 8;
  from.has_left = chroma_columns_.begin > plane.first.width;
  from.has_right = chroma_columns_.end < std::min(end, chroma_.width);
  for (int c = 1; c < planes_; ++c) {
    ChromaStrip& chroma = from.chroma[c - 1];
    if (halves_down_) {
      chroma = {chroma_rows(c, strip), chroma_rows(c, strip - 1), chroma_rows(c, strip + 1)};
    } else {
      chroma.near = chroma_rows(c, 2 * strip);
    }
  }
  exact_colours(from, chroma_sums_.data(), colours_.data());
  return colours_.data();
}

void ExactPixels::resize(int row) {
  const bool is_last = row + 1 == mcus().height;
  const int strips = is_last ? samples_.plane(0).strips : whole_rows(row) / kStripRows;
  const int first_column = chroma_columns_.begin * (halves_across_ ? 2 : 1) - crop_.width;
  for (; strips_done_ < strips; ++strips_done_) {
    passes_.strip(make_colours(strips_done_), first_column);
  }
}

void ExactPixels::release() {
  samples_.release();
  chroma_sums_.release();
  colours_.release();
  passes_.release();
}

int64_t ExactPixels::scratch_bytes() const {
  return samples_.scratch_bytes() + chroma_sums_.bytes() + colours_.bytes() +
         passes_.scratch_bytes();
}

}  // namespace stoker
