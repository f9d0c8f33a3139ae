#include "pipeline/target.h"

#include <set>
#include <stdexcept>

#include "pipeline/files/printable_name.h"

namespace stoker {
namespace {

constexpr int64_t kMaxTargetBytes = int64_t{1} << 28;

std::string quoted(const std::string& name) {
  std::string text = "'";
  return text.append(printable_name(name)).append("'");
}

void check_column(const TargetColumn& column) {
  if (column.type == TargetType::text && !column.varies) {
    throw std::invalid_argument("target " + quoted(column.name) + " is of texts, which vary");
  }
  int64_t bytes = bytes_of(column.type);
  for (const int64_t extent : column.shape) {
    if (extent < 1 || extent > kMaxTargetBytes / bytes) {
      throw std::invalid_argument(
          "target " + quoted(column.name) + " has the shape " + shape_text(column.shape) +
          ": every extent must be 1 or more, and a sample may have 256 MiB");
    }
    bytes *= extent;
  }
}

}  // namespace

int64_t TargetColumn::numbers() const {
  int64_t product = varies && shape.empty() ? 0 : 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

int TargetColumn::bytes() const { return static_cast<int>(numbers()) * bytes_of(type); }

std::string TargetColumn::describe() const {
  const std::string text = quoted(name) + ": " + name_of(type);
  if (varies) return text + (type == TargetType::text ? "" : " []");
  return text + " " + shape_text(shape);
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "(" + text + ")";
}

int bytes_of(TargetType type) {
  switch (type) {
    case TargetType::uint8:
    case TargetType::text:
      return 1;
    case TargetType::float16:
    case TargetType::bfloat16:
      return 2;
    case TargetType::int32:
    case TargetType::float32:
      return 4;
    case TargetType::int64:
      return 8;
  }
  return 0;
}

const char* name_of(TargetType type) {
  switch (type) {
    case TargetType::uint8:
      return "uint8";
    case TargetType::int32:
      return "int32";
    case TargetType::int64:
      return "int64";
    case TargetType::float32:
      return "float32";
    case TargetType::float16:
      return "float16";
    case TargetType::bfloat16:
      return "bfloat16";
    case TargetType::text:
      return "text";
  }
  return "?";
}

void check_targets(std::span<const TargetColumn> columns) {
  std::set<std::string> names;
  for (const TargetColumn& column : columns) {
    if (column.name.empty()) throw std::invalid_argument("a target has no name");
    if (!names.insert(column.name).second) {
      throw std::invalid_argument("there are two targets with the name " + quoted(column.name));
    }
    check_column(column);
  }
}

}  // namespace stoker
