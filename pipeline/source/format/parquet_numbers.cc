#include <algorithm>
#include <bit>

#include "pipeline/source/format/little_endian.h"
#include "pipeline/source/format/parquet_columns.h"

namespace stoker {
namespace {

// A column of float32 has 256 MiB of one sample at most.
constexpr size_t kMaxNumbersOfRow = size_t{1} << 26;

std::string rows_text(int64_t rows) { return std::to_string(rows) + " rows"; }

}  // namespace

std::optional<ParquetNumberKind> number_kind(const ParquetField& field) {
  const auto kind = [](NumberForm form) { return ParquetNumberKind{form, target_type(form)}; };
  const bool has_meaning = field.converted >= 0 || field.logical > 0;
  switch (field.type) {
    case ParquetType::boolean:
      return kind(NumberForm::boolean);
    case ParquetType::int32:
      if (!field.is_plain_integer()) return std::nullopt;
      if (field.is_uint8()) return ParquetNumberKind{NumberForm::uint32, TargetType::uint8};
      return kind(field.is_unsigned() ? NumberForm::uint32 : NumberForm::int32);
    case ParquetType::int64:
      if (!field.is_plain_integer()) return std::nullopt;
      return kind(field.is_unsigned() ? NumberForm::uint64 : NumberForm::int64);
    case ParquetType::float32:
      return has_meaning ? std::nullopt : std::optional(kind(NumberForm::float32));
    case ParquetType::float64:
      return has_meaning ? std::nullopt : std::optional(kind(NumberForm::float64));
    default:
      return field.is_float16() ? std::optional(kind(NumberForm::float16)) : std::nullopt;
  }
}

void ListShape::begin(int levels) {
  counts_.assign(static_cast<size_t>(levels), 1);
  shape_.assign(static_cast<size_t>(levels), 0);
}

bool ListShape::close_from(size_t level) {
  for (size_t i = level; i < counts_.size(); ++i) {
    if (shape_[i] == 0) shape_[i] = counts_[i];
    if (shape_[i] != counts_[i]) return false;
    counts_[i] = 1;
  }
  return true;
}

bool ListShape::add(uint32_t repetition) {
  if (!close_from(repetition)) return false;
  ++counts_[repetition - 1];
  return true;
}

bool ListShape::end(std::vector<int64_t>& shape) {
  if (!close_from(0)) return false;
  shape = shape_;
  return true;
}

ParquetNumbers::ParquetNumbers(BlobReader& blob, const ParquetColumn& column,
                               const ParquetField& field, const ParquetChunk& chunk,
                               int64_t first_row, int64_t rows, int64_t& budget)
    : blob_(blob),
      column_(column),
      pages_(blob, column, chunk),
      kind_(number_kind(field)),
      first_row_(first_row),
      rows_(rows),
      budget_(budget) {}

void ParquetNumbers::next(FoundTarget& out) {
  out.clear();
  if (!find_value()) {
    pages_.fail(page_.offset, "its pages have " + rows_text(done_) + ", and the row group has " +
                                  rows_text(rows_));
  }
  out.offset = page_.offset;
  if (column_.max_repetition > 0) {
    take_list(out);
  } else {
    take_value(out);
  }
  if (kind_) out.type = kind_->type;
  ++done_;
}

void ParquetNumbers::take_list(FoundTarget& out) {
  if (*repetition_ != 0) fail_row("begins with a value that goes on with the row before it");
  const char* const ragged = "has lists of different lengths beside each other";
  is_empty_ = false;
  shape_.begin(column_.max_repetition);
  take_value(out);
  while (find_value() && *repetition_ > 0) {
    if (!shape_.add(*repetition_)) refuse_values(ragged);
    if (out.size() + out.texts.size() >= kMaxNumbersOfRow) {
      fail_row("has more than " + std::to_string(kMaxNumbersOfRow) + " numbers");
    }
    take_value(out);
  }
  if (!shape_.end(out.shape)) refuse_values(ragged);
  if (is_empty_) out.shape = {0};
}

void ParquetNumbers::next_objects(int empty_below, FoundTarget& out, std::string& problem) {
  std::string own;
  problem_ = &own;
  empty_below_ = static_cast<uint32_t>(empty_below);
  next(out);
  if (problem.empty() && !own.empty()) problem = "column " + column_.name + " " + own;
}

void ParquetNumbers::next_varying(int empty_below, FoundTarget& out) {
  problem_ = &out.problem;
  empty_below_ = static_cast<uint32_t>(empty_below);
  // A list that may be null has a level for that below the one of an empty list.
  null_below_ = static_cast<uint32_t>(std::max(empty_below - 1, 0));
  next(out);
}

void ParquetNumbers::expect_end() {
  if (!find_value()) return;
  pages_.fail(page_.offset,
              "its pages have more rows than the " + std::to_string(rows_) + " of the row group");
}

// Finds the next value and how it goes on with the one before it. Returns false at the end.
bool ParquetNumbers::find_value() {
  if (repetition_) return true;
  while (left_ == 0) {
    if (!next_page()) return false;
  }
  --left_;
  repetition_ = 0;
  if (column_.max_repetition == 0) return true;
  if (!repetitions_.next(*repetition_)) {
    pages_.fail(page_.offset, "the repetition levels of a page end before its last value");
  }
  if (*repetition_ > static_cast<uint32_t>(column_.max_repetition)) {
    pages_.fail(page_.offset, "a repetition level of " + std::to_string(*repetition_) +
                                  ", and the schema has " + std::to_string(column_.max_repetition));
  }
  return true;
}

void ParquetNumbers::take_value(FoundTarget& out) {
  repetition_.reset();
  uint32_t definition = 0;
  if (column_.max_definition > 0) {
    if (!definitions_.next(definition)) {
      pages_.fail(page_.offset, "the definition levels of a page end before its last value");
    }
    if (definition < empty_below_ && definition >= null_below_) {
      is_empty_ = true;
      return;
    }
    if (definition != static_cast<uint32_t>(column_.max_definition)) {
      const bool is_list = column_.max_repetition > 0 && null_below_ == 0 && empty_below_ == 0;
      return refuse_values(is_list ? "has an empty list or a null"
                                   : "has no " + column_.missing + " (null)");
    }
  }
  if (indexes_) {
    add_from_dictionary(out);
  } else if (kind_ && kind_->form == NumberForm::boolean) {
    add_boolean(out);
  } else {
    add_stored(out);
  }
}

void ParquetNumbers::add_from_dictionary(FoundTarget& out) {
  const size_t place = indexes_->next();
  if (!kind_) {
    out.add_text(dictionary_texts_[place]);
  } else if (dictionary_.reals.empty()) {
    out.add(dictionary_.integers[place]);
  } else {
    out.add(dictionary_.reals[place]);
  }
}

void ParquetNumbers::fail_row(const std::string& reason) const {
  pages_.fail(page_.offset, "row " + std::to_string(first_row_ + done_) + " " + reason);
}

// Goes on with a row of objects, whose sample is a bad one.
void ParquetNumbers::refuse_values(const std::string& reason) const {
  if (problem_ == nullptr) fail_row(reason);
  if (problem_->empty()) *problem_ = reason;
}

bool ParquetNumbers::next_page() {
  if (!pages_.next(page_)) return false;
  if (page_.kind == PageKind::dictionary) {
    read_dictionary(page_);
    return true;
  }
  if (column_.max_repetition > 0) {
    pages_.check_count(page_, budget_);
    budget_ -= page_.values;
  } else {
    pages_.check_count(page_, rows_ - done_);
  }
  left_ = page_.values;
  if (left_ > 0) begin_values();
  return true;
}

void ParquetNumbers::begin_values() {
  pages_.split(page_, pages_.load(page_, nullptr), parts_);
  const auto width = [](int most) { return std::bit_width(static_cast<uint32_t>(most)); };
  repetitions_ = HybridReader(parts_.repetitions, width(column_.max_repetition));
  definitions_ = HybridReader(parts_.definitions, width(column_.max_definition));
  indexes_.reset();
  runs_.reset();
  bit_ = 0;
  if (page_.encoding == PageEncoding::dictionary) {
    if (!has_dictionary_) pages_.fail(page_.offset, kNoDictionary);
    indexes_.emplace(pages_, page_, parts_.values,
                     kind_ ? dictionary_.size() : dictionary_texts_.size());
  } else if (page_.encoding == PageEncoding::runs_of_booleans) {
    // The runs' length stands before them.
    if (parts_.values.size() < 4) pages_.fail(page_.offset, "a page ends inside its booleans");
    runs_.emplace(parts_.values.subspan(4), 1);
  }
}

void ParquetNumbers::read_dictionary(const ParquetPage& page) {
  pages_.check_count(page, blob_.size() * kMaxRowsPerByte);
  parts_.values = pages_.load(page, nullptr);
  dictionary_.clear();
  dictionary_texts_.clear();
  for (int64_t i = 0; i < page.values; ++i) {
    if (kind_) {
      add_stored(dictionary_);
    } else {
      dictionary_texts_.emplace_back(take_text());
    }
  }
  has_dictionary_ = true;
}

// A text's length stands before it.
std::string_view ParquetNumbers::take_text() {
  constexpr size_t kTextLengthBytes = 4;
  const auto& values = parts_.values;
  const size_t length =
      values.size() < kTextLengthBytes ? 0 : read_little_endian(values.first(kTextLengthBytes));
  if (values.size() < kTextLengthBytes || length > values.size() - kTextLengthBytes) {
    pages_.fail(page_.offset,
                "a page of " + std::to_string(page_.values) + " values ends inside one of them");
  }
  const auto text = values.subspan(kTextLengthBytes, length);
  parts_.values = values.subspan(kTextLengthBytes + length);
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

void ParquetNumbers::add_stored(FoundTarget& out) {
  if (!kind_) {
    out.add_text(take_text());
    return;
  }
  const auto bytes = static_cast<size_t>(bytes_of(kind_->form));
  if (parts_.values.size() < bytes) {
    pages_.fail(page_.offset,
                "a page of " + std::to_string(page_.values) + " values ends inside one of them");
  }
  const std::string problem = append_numbers(kind_->form, parts_.values.first(bytes), out);
  if (!problem.empty()) refuse_values(problem);
  parts_.values = parts_.values.subspan(bytes);
}

void ParquetNumbers::add_boolean(FoundTarget& out) {
  uint32_t value = 0;
  if (runs_) {
    if (!runs_->next(value)) pages_.fail(page_.offset, "the booleans of a page end too early");
  } else {
    if (parts_.values.empty()) pages_.fail(page_.offset, "the booleans of a page end too early");
    value = parts_.values[0] >> bit_ & 1u;
    bit_ = (bit_ + 1) % 8;
    if (bit_ == 0) parts_.values = parts_.values.subspan(1);
  }
  out.add(int64_t{value});
}

}  // namespace stoker
