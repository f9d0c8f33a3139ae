#include "pipeline/source/format/little_endian.h"
#include "pipeline/source/format/parquet_columns.h"

namespace stoker {
ParquetLabels::ParquetLabels(BlobReader& blob, const ParquetColumn& column,
                             const ParquetField& field, const ParquetChunk& chunk,
                             int64_t first_row, int64_t rows)
    : blob_(blob),
      pages_(blob, column, chunk),
      type_(field.type),
      is_unsigned_(field.is_unsigned()),
      first_row_(first_row),
      rows_(rows) {}

BlobLabel ParquetLabels::next() {
  while (left_ == 0) {
    if (!next_page()) {
      pages_.fail(page_.offset, "its pages have " + std::to_string(done_) +
                                    " values, and the row group has " + std::to_string(rows_) +
                                    " rows");
    }
  }
  --left_;
  ++done_;
  return indexes_ ? dictionary_[indexes_->next()] : read_value();
}

void ParquetLabels::expect_end() {
  // A page that is too large is refused on the way.
  while (next_page()) {
  }
}

bool ParquetLabels::next_page() {
  if (!pages_.next(page_)) return false;
  if (page_.kind == PageKind::dictionary) {
    read_dictionary(page_);
    return true;
  }
  pages_.check_count(page_, rows_ - done_);
  left_ = page_.values;
  if (left_ == 0) return true;
  values_ = pages_.check_levels(page_, pages_.load(page_, nullptr), first_row_ + done_);
  indexes_.reset();
  if (page_.encoding == PageEncoding::dictionary) {
    if (!has_dictionary_) pages_.fail(page_.offset, kNoDictionary);
    indexes_.emplace(pages_, page_, values_, dictionary_.size());
  }
  return true;
}

void ParquetLabels::read_dictionary(const ParquetPage& page) {
  pages_.check_count(page, blob_.size() * kMaxRowsPerByte);
  const std::span<const uint8_t> bytes = pages_.load(page, nullptr);
  dictionary_bytes_.assign(bytes.begin(), bytes.end());
  values_ = dictionary_bytes_;
  dictionary_.clear();
  for (int64_t i = 0; i < page.values; ++i) dictionary_.push_back(read_value());
  has_dictionary_ = true;
}

std::span<const uint8_t> ParquetLabels::take(size_t bytes) {
  if (values_.size() < bytes) {
    pages_.fail(page_.offset,
                "a page of " + std::to_string(page_.values) + " values ends inside one of them");
  }
  const std::span<const uint8_t> taken = values_.first(bytes);
  values_ = values_.subspan(bytes);
  return taken;
}

BlobLabel ParquetLabels::read_value() {
  if (type_ == ParquetType::byte_array) {
    const std::span<const uint8_t> text = take(read_little_endian(take(4)));
    return std::string_view(reinterpret_cast<const char*>(text.data()), text.size());
  }
  if (type_ == ParquetType::int32) {
    const auto value = static_cast<uint32_t>(read_little_endian(take(4)));
    return is_unsigned_ ? int64_t{value} : int64_t{static_cast<int32_t>(value)};
  }
  const uint64_t value = read_little_endian(take(8));
  if (is_unsigned_ && value > INT64_MAX) {
    pages_.fail(page_.offset, "the label " + std::to_string(value) + " is too large");
  }
  return static_cast<int64_t>(value);
}

}  // namespace stoker
