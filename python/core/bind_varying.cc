#include "python/core/bind_varying.h"

#include <cstring>
#include <stdexcept>

#include "pipeline/row/packed_values.h"
#include "pipeline/source/blob/target_values.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;

nb::object text_object(std::string_view bytes) {
  return nb::steal<nb::object>(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

Array host_array(const TargetColumn& column, std::span<const std::byte> bytes,
                 std::vector<int64_t> shape) {
  const auto memory = std::make_shared<HostBytes>(bytes.size());
  if (!bytes.empty()) std::memcpy(memory->data(), bytes.data(), bytes.size());
  TargetColumn number = column;
  number.shape.clear();
  Array array = target_array(number, memory->data(), {}, std::move(shape));
  array.holder = memory;
  return array;
}

Array array_of_offsets(const std::vector<int32_t>& offsets) {
  return host_array({"", TargetType::int32}, std::as_bytes(std::span(offsets)),
                    {std::ssize(offsets)});
}

// The values of some rows.
class Rows {
 public:
  explicit Rows(const VaryingTarget& target)
      : target_(target), value_bytes_(static_cast<size_t>(bytes_of(target.column.type))) {}

  int64_t count() const { return std::ssize(target_.offsets) - 1; }
  std::span<const std::byte> of(int64_t row) const {
    const auto place = static_cast<size_t>(row);
    const auto begin = static_cast<size_t>(target_.offsets.at(place));
    const auto end = static_cast<size_t>(target_.offsets.at(place + 1));
    const auto* const values = static_cast<const std::byte*>(target_.values.data);
    return {values + begin * value_bytes_, (end - begin) * value_bytes_};
  }

 private:
  const VaryingTarget& target_;
  const size_t value_bytes_;
};

std::vector<int64_t> all_rows_of(int64_t count) {
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < count; ++row) rows.push_back(row);
  return rows;
}

}  // namespace

nb::object texts_of(std::string_view bytes, bool has_all_texts) {
  if (!has_all_texts) return text_object(bytes);
  nb::list texts;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\0');
    texts.append(text_object(bytes.substr(0, end)));
    bytes.remove_prefix(end + 1);
  }
  return texts;
}

void put_varying(const VaryingTarget& target, const std::optional<std::vector<int64_t>>& rows,
                 nb::dict& out) {
  const Rows all(target);
  const std::vector<int64_t> chosen = rows ? *rows : all_rows_of(all.count());
  const char* const name = target.column.name.c_str();
  if (target.column.type == TargetType::text) {
    nb::list texts;
    for (const int64_t row : chosen) {
      const auto bytes = all.of(row);
      texts.append(texts_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                            target.has_all_texts));
    }
    out[name] = texts;
    return;
  }
  std::vector<std::byte> values;
  std::vector<int32_t> offsets = {0};
  for (const int64_t row : chosen) {
    const auto bytes = all.of(row);
    values.insert(values.end(), bytes.begin(), bytes.end());
    offsets.push_back(static_cast<int32_t>(std::ssize(values) / bytes_of(target.column.type)));
  }
  out[name] = rows ? host_array(target.column, values, {offsets.back()}) : target.values;
  out[(target.column.name + "_offsets").c_str()] = array_of_offsets(offsets);
}

std::pair<Array, Array> padded(const VaryingTarget& target, int64_t multiple,
                               const std::variant<int64_t, double>& value) {
  if (target.column.type == TargetType::text) {
    throw std::invalid_argument(target.column.describe() + " cannot be padded: tokenize it first");
  }
  if (multiple < 1) {
    throw std::invalid_argument("multiple is " + std::to_string(multiple) + ", must be 1 or more");
  }
  FoundTarget number;
  std::visit([&](auto one) { number.add(one); }, value);
  std::vector<std::byte> fill;
  const TargetColumn column{target.column.name, target.column.type};
  const std::string problem = append_target(column, number, fill);
  if (!problem.empty()) throw std::invalid_argument("value " + problem);
  int64_t places = 0;
  const PackedValues packed{target.offsets, static_cast<const std::byte*>(target.values.data)};
  const std::vector<std::byte> bytes = padded_values(packed, fill, multiple, places);
  std::vector<int64_t> lengths;
  for (size_t row = 0; row + 1 < target.offsets.size(); ++row) {
    lengths.push_back(target.offsets[row + 1] - target.offsets[row]);
  }
  return {host_array(column, bytes, {std::ssize(lengths), places}),
          host_array({"", TargetType::int64}, std::as_bytes(std::span(lengths)),
                     {std::ssize(lengths)})};
}

}  // namespace stoker::python
