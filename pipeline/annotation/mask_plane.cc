#include "pipeline/annotation/mask_plane.h"

#include <algorithm>
#include <bit>

#include "pipeline/annotation/polygon_columns.h"

namespace stoker {
namespace {

// A plane's bytes are written out as they lie in memory.
static_assert(std::endian::native == std::endian::little);

constexpr int kWordBits = 64;

void flip_bits(uint64_t* row, int first, int end) {
  for (int at = first; at < end;) {
    const int bit = at % kWordBits;
    const int count = std::min(kWordBits - bit, end - at);
    row[at / kWordBits] ^= ~uint64_t{0} >> (kWordBits - count) << bit;
    at += count;
  }
}

}  // namespace

void MaskPlane::Part::add(const Part& other) {
  top = std::min(top, other.top);
  bottom = std::max(bottom, other.bottom);
  first = std::min(first, other.first);
  end = std::max(end, other.end);
}

void MaskPlane::begin(const AxisMaps& maps) {
  source_ = maps.before;
  const std::vector<int32_t>& columns = maps.columns();
  columns_.assign(static_cast<size_t>(source_.width), {});
  for (size_t x = 0; x < columns.size(); ++x) {
    if (columns[x] == AxisMaps::kNothing) continue;
    Seen& seen = columns_[static_cast<size_t>(columns[x])];
    if (seen.end == 0) seen.first = static_cast<int32_t>(x);
    seen.end = static_cast<int32_t>(x) + 1;
  }
  find_rows(maps.rows());
  height_ = static_cast<int>(maps.rows().size());
  stride_ = (columns.size() + kWordBits - 1) / kWordBits;
  changes_.assign(static_cast<size_t>(height_) * stride_, 0);
  bits_.assign(static_cast<size_t>(height_) * stride_, 0);
  inside_.resize(stride_);
  changed_.clear();
  drawn_.clear();
}

// A pixel is inside if an odd number of changes is at or above its row. Upside down, it is if an
// odd number is below, which is the same, for a column has an even number of changes.
void MaskPlane::find_rows(const std::vector<int32_t>& rows) {
  const auto is_seen = [](int32_t row) { return row != AxisMaps::kNothing; };
  const auto first = std::find_if(rows.begin(), rows.end(), is_seen);
  const auto end = std::find_if_not(first, rows.end(), is_seen);
  row_of_.resize(static_cast<size_t>(source_.height) + 1);
  end_row_ = static_cast<int>(end - rows.begin());
  if (first == end) {
    std::fill(row_of_.begin(), row_of_.end(), end_row_);
    return;
  }
  const bool is_upside_down = *first > *(end - 1);
  auto at = first;
  for (int i = 0; i <= source_.height; ++i) {
    const int row = is_upside_down ? source_.height - i : i;
    while (at != end && (is_upside_down ? *at >= row : *at < row)) ++at;
    row_of_[static_cast<size_t>(row)] = static_cast<int32_t>(at - rows.begin());
  }
}

void MaskPlane::change(int column, int row) {
  const Seen seen = columns_[static_cast<size_t>(column)];
  const int y = row_of_[static_cast<size_t>(row)];
  const auto first = static_cast<size_t>(seen.first) / kWordBits;
  const auto last = static_cast<size_t>(seen.end - 1) / kWordBits;
  changed_.add({y, y, first, last + 1});
  if (y < end_row_) flip_bits(words(changes_, y), seen.first, seen.end);
}

void MaskPlane::add_polygon(std::span<const std::array<double, 2>> points) {
  cross_columns(
      points, source_,
      [&](int column) {
        const Seen seen = columns_[static_cast<size_t>(column)];
        return seen.first < seen.end;
      },
      [&](int column, int row) { change(column, row); });
  fill_changed();
}

void MaskPlane::add_runs(std::span<const uint32_t> runs) {
  const auto height = static_cast<uint32_t>(source_.height);
  uint32_t at = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const uint32_t end = at + runs[i];
    if (i % 2 == 0) at = end;
    while (at < end) {  // its parts in each column
      const uint32_t column = at / height, row = at % height;
      const uint32_t last = std::min(end - column * height, height);
      const Seen seen = columns_[column];
      if (seen.first < seen.end) {
        change(static_cast<int>(column), static_cast<int>(row));
        change(static_cast<int>(column), static_cast<int>(last));
      }
      at = column * height + last;
    }
  }
  fill_changed();
}

// Draws what the changes are the boundary of, and forgets them.
void MaskPlane::fill_changed() {
  if (changed_.is_empty()) return;
  const auto [top, bottom, first, end] = changed_;
  std::fill(inside_.begin() + static_cast<ptrdiff_t>(first),
            inside_.begin() + static_cast<ptrdiff_t>(end), 0);
  for (int y = top; y <= std::min(bottom, end_row_ - 1); ++y) {
    uint64_t* const changes = words(changes_, y);
    uint64_t* const bits = words(bits_, y);
    for (size_t i = first; i < end; ++i) {
      inside_[i] ^= changes[i];
      bits[i] |= inside_[i];
      changes[i] = 0;
    }
  }
  drawn_.add(changed_);
  changed_.clear();
}

void MaskPlane::clear() {
  const Bounds bounds = this->bounds();
  for (int y = bounds.top; y < bounds.bottom; ++y) {
    std::fill(words(bits_, y) + drawn_.first, words(bits_, y) + drawn_.end, 0);
  }
  drawn_.clear();
}

MaskPlane::Bounds MaskPlane::bounds() const {
  if (drawn_.is_empty()) return {};
  return {drawn_.top, std::min(drawn_.bottom + 1, end_row_), drawn_.first * sizeof(uint64_t),
          drawn_.end * sizeof(uint64_t)};
}

const uint8_t* MaskPlane::row(int y) const {
  return reinterpret_cast<const uint8_t*>(bits_.data() + static_cast<size_t>(y) * stride_);
}

}  // namespace stoker
