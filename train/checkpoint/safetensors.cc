#include "train/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "pipeline/files/durable_file.h"
#include "staging/error_text.h"

namespace stoker {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the format is little endian");

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the reference implementation's limit
constexpr size_t kMaxDimensions = 32;

const std::map<std::string, uint64_t>& element_bytes() {
  static const std::map<std::string, uint64_t> sizes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
      {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};
  return sizes;
}

uint64_t count_of(const TensorView& tensor) {
  uint64_t count = 1;
  for (const int64_t extent : tensor.shape) {
    if (extent < 0) throw std::invalid_argument("safetensors: negative extent in " + tensor.name);
    count *= static_cast<uint64_t>(extent);
  }
  if (count != tensor.values.size()) {
    throw std::invalid_argument("safetensors: " + tensor.name + " has " +
                                std::to_string(tensor.values.size()) + " values, its shape " +
                                std::to_string(count));
  }
  return count;
}

// Parses the header. Throws at the first error, and also for what the parser would silently accept:
// a repeated key, or deep nesting.
Json parse_header(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  const auto check = [&keys](int depth, Json::parse_event_t event, Json& value) {
    if (depth > 4) throw std::runtime_error("header nested too deeply");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
      throw std::runtime_error("header has \"" + value.get<std::string>() + "\" twice");
    }
    return true;
  };
  return Json::parse(text.begin(), text.end(), check);
}

uint64_t unsigned_of(const Json& value, const char* what) {
  if (!value.is_number_unsigned()) {
    throw std::runtime_error(std::string(what) + " is not a non-negative integer");
  }
  return value.get<uint64_t>();
}

StoredTensor tensor_of(const std::string& name, const Json& entry, uint64_t data_bytes) {
  const auto wrong = [&name](const std::string& what) {
    return std::runtime_error("tensor " + name + ": " + what);
  };
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") ||
      !entry.contains("shape") || !entry.contains("data_offsets")) {
    throw wrong("wants exactly dtype, shape and data_offsets");
  }
  const Json &dtype = entry["dtype"], &shape = entry["shape"], &offsets = entry["data_offsets"];
  if (!dtype.is_string() || !element_bytes().contains(dtype.get<std::string>())) {
    throw wrong("unknown dtype " + dtype.dump(-1, ' ', true, Json::error_handler_t::replace));
  }
  if (!shape.is_array() || shape.size() > kMaxDimensions) throw wrong("no sensible shape");
  if (!offsets.is_array() || offsets.size() != 2) throw wrong("data_offsets wants two numbers");

  StoredTensor tensor;
  tensor.dtype = dtype.get<std::string>();
  uint64_t bytes = element_bytes().at(tensor.dtype);
  for (const Json& extent : shape) {
    const uint64_t value = unsigned_of(extent, "an extent");
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ||
        (value != 0 && bytes > std::numeric_limits<uint64_t>::max() / value)) {
      throw wrong("shape is too large");
    }
    bytes *= value;
    tensor.shape.push_back(static_cast<int64_t>(value));
  }
  tensor.begin = unsigned_of(offsets[0], "an offset");
  tensor.end = unsigned_of(offsets[1], "an offset");
  if (tensor.begin > tensor.end || tensor.end > data_bytes) {
    throw wrong("bytes [" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) +
                ") of " + std::to_string(data_bytes));
  }
  if (tensor.end - tensor.begin != bytes) {
    throw wrong("has " + std::to_string(tensor.end - tensor.begin) + " bytes, its shape " +
                std::to_string(bytes));
  }
  return tensor;
}

// Throws unless the tensors fill the file one after another, without gaps (where something could be
// hidden) or overlaps.
void check_layout(const std::map<std::string, StoredTensor>& tensors, uint64_t data_bytes) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& [name, tensor] : tensors) ranges.emplace_back(tensor.begin, tensor.end);
  std::sort(ranges.begin(), ranges.end());
  uint64_t at = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != at) {
      throw std::runtime_error("gap or overlap at byte " + std::to_string(at) + " of the data");
    }
    at = end;
  }
  if (at != data_bytes) {
    throw std::runtime_error("the tensors have " + std::to_string(at) + " bytes, the file " +
                             std::to_string(data_bytes));
  }
}

// Returns the length of the header in a file of `file_bytes` that begins with `head`.
uint64_t header_length(std::string_view head, uint64_t file_bytes) {
  if (head.size() < kLengthBytes) {
    throw std::runtime_error(std::to_string(head.size()) + " bytes are too few");
  }
  uint64_t length = 0;
  std::memcpy(&length, head.data(), kLengthBytes);
  if (length > kMaxHeaderBytes || length > file_bytes - kLengthBytes) {
    throw std::runtime_error("header of " + std::to_string(length) + " bytes in a file of " +
                             std::to_string(file_bytes));
  }
  return length;
}

}  // namespace

void write_safetensors(const std::string& path, std::span<const TensorView> tensors,
                       const TensorMetadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t at = 0;
  for (const TensorView& tensor : tensors) {
    if (header.contains(tensor.name)) {
      throw std::invalid_argument("safetensors: \"" + tensor.name + "\" twice");
    }
    const uint64_t bytes = count_of(tensor) * sizeof(float);
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = header.dump();
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');  // aligns the data
  const uint64_t length = text.size();
  std::string head(kLengthBytes, '\0');
  std::memcpy(head.data(), &length, kLengthBytes);

  std::vector<std::string_view> pieces = {head, text};
  for (const TensorView& tensor : tensors) {
    pieces.emplace_back(reinterpret_cast<const char*>(tensor.values.data()),
                        tensor.values.size_bytes());
  }
  write_flushed(path, pieces);
}

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  const uint64_t bytes = std::filesystem::file_size(path);
  try {
    std::string head(std::min(bytes, kLengthBytes), '\0');
    read_part(path, 0, head);
    std::string text(header_length(head, bytes), '\0');
    read_part(path, kLengthBytes, text);
    parse(text, bytes - kLengthBytes - text.size());
  } catch (const std::exception& error) {
    throw std::runtime_error(path_ + " is not a sound safetensors file: " + error_text(error));
  }
}

SafetensorsFile::SafetensorsFile(std::string bytes, std::string name)
    : bytes_(std::move(bytes)), path_(std::move(name)) {
  try {
    const std::string_view all = bytes_;
    const std::string_view text =
        all.substr(std::min(all.size(), size_t{kLengthBytes}), header_length(all, all.size()));
    parse(text, all.size() - kLengthBytes - text.size());
  } catch (const std::exception& error) {
    throw std::runtime_error(path_ + " is not a sound safetensors file: " + error_text(error));
  }
}

void SafetensorsFile::parse(std::string_view text, uint64_t data_bytes) {
  if (text.empty() || text[0] != '{') throw std::runtime_error("header does not begin with {");
  data_begin_ = kLengthBytes + text.size();
  const Json header = parse_header(text);
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") {
      tensors_.emplace(name, tensor_of(name, entry, data_bytes));
      continue;
    }
    if (!entry.is_object()) throw std::runtime_error("__metadata__ is not an object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) throw std::runtime_error("__metadata__ holds more than strings");
      metadata_[key] = value.get<std::string>();
    }
  }
  check_layout(tensors_, data_bytes);
}

const StoredTensor& SafetensorsFile::find(const std::string& name,
                                          std::span<const int64_t> shape) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw std::runtime_error(path_ + " has no tensor " + name);
  const StoredTensor& tensor = found->second;
  if (tensor.dtype == "F32" && std::ranges::equal(tensor.shape, shape)) return tensor;
  throw std::runtime_error(path_ + ": tensor " + name + " is " + tensor.dtype + " " +
                           Json(tensor.shape).dump() + ", wanted F32 " +
                           Json(std::vector<int64_t>(shape.begin(), shape.end())).dump());
}

void SafetensorsFile::read(const std::string& name, std::span<const int64_t> shape,
                           std::span<float> values) const {
  const StoredTensor& tensor = find(name, shape);
  if (tensor.end - tensor.begin != values.size_bytes()) {
    throw std::runtime_error(path_ + ": tensor " + name + " has " +
                             std::to_string(tensor.end - tensor.begin) + " bytes, wanted " +
                             std::to_string(values.size_bytes()));
  }
  if (bytes_.empty()) {
    read_part(path_, data_begin_ + tensor.begin,
              {reinterpret_cast<char*>(values.data()), values.size_bytes()});
  } else {
    std::memcpy(values.data(), bytes_.data() + data_begin_ + tensor.begin, values.size_bytes());
  }
}

}  // namespace stoker
