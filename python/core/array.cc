#include "python/core/array.h"

#include <cstring>
#include <new>
#include <stdexcept>

#include "staging/error_text.h"

namespace stoker::python {
namespace {

std::unique_ptr<uint8_t[]> allocate(size_t bytes) {
  try {
    return std::unique_ptr<uint8_t[]>(new uint8_t[bytes]);
  } catch (const std::bad_alloc&) {
    throw OutOfMemory("an array", bytes);
  }
}

DlType number_type(TargetType type) {
  switch (type) {
    case TargetType::uint8:
      return kUint8;
    case TargetType::int32:
      return kInt32;
    case TargetType::int64:
      return kInt64;
    case TargetType::float16:
      return kFloat16;
    case TargetType::bfloat16:
      return kBfloat16;
    case TargetType::text:
      return kUint8;
    case TargetType::float32:
      break;
  }
  return kFloat32;
}

}  // namespace

HostBytes::HostBytes(size_t bytes) : bytes_(allocate(bytes)) {}

void HostBytes::copy_to_host(void* target, const void* source, size_t bytes) {
  std::memcpy(target, source, bytes);
}

int64_t Array::size() const {
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  return size;
}

std::string Array::type_name() const {
  const char* name = "float";
  if (type.code == static_cast<uint8_t>(DlTypeCode::int_)) name = "int";
  if (type.code == static_cast<uint8_t>(DlTypeCode::uint)) name = "uint";
  if (type.code == static_cast<uint8_t>(DlTypeCode::bfloat)) name = "bfloat";
  return name + std::to_string(type.bits);
}

std::string Array::device_name() const {
  return on_host() ? "cpu" : "cuda:" + std::to_string(device.id);
}

Array Array::host_copy() const {
  auto memory = std::make_shared<HostBytes>(static_cast<size_t>(bytes()));
  holder->copy_to_host(memory->data(), data, static_cast<size_t>(bytes()));
  Array copy = *this;  // also the strides: the byte order of a dense array is kept
  copy.data = memory->data();
  copy.holder = std::move(memory);
  copy.device = {};
  return copy;
}

std::vector<int64_t> compact_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

Array make_image(int height, int width) {
  Array image;
  image.shape = {height, width, 3};
  image.strides = compact_strides(image.shape);
  image.type = kUint8;
  auto memory = std::make_shared<HostBytes>(static_cast<size_t>(image.bytes()));
  image.data = memory->data();
  image.holder = std::move(memory);
  return image;
}

Array target_array(const TargetColumn& column, const void* data, DlDevice device,
                   std::vector<int64_t> outer) {
  Array array;
  array.data = const_cast<void*>(data);  // the memory belongs to its holder
  array.type = number_type(column.type);
  array.device = device;
  array.shape = std::move(outer);
  array.shape.insert(array.shape.end(), column.shape.begin(), column.shape.end());
  array.strides = compact_strides(array.shape);
  return array;
}

TargetType target_type_named(const std::string& name) {
  for (const TargetType type : {TargetType::uint8, TargetType::int32, TargetType::int64,
                                TargetType::float32, TargetType::text}) {
    if (name == name_of(type)) return type;
  }
  throw std::invalid_argument(name + " is no type of targets");
}

}  // namespace stoker::python
