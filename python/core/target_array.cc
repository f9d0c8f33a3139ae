#include "python/core/target_array.h"

#include <stdexcept>

namespace stoker::python {
namespace {

DlType number_type(TargetType type) {
  switch (type) {
    case TargetType::uint8:
      return kUint8;
    case TargetType::int32:
      return kInt32;
    case TargetType::int64:
      return kInt64;
    case TargetType::float32:
      break;
  }
  return kFloat32;
}

}  // namespace

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
  for (const TargetType type :
       {TargetType::uint8, TargetType::int32, TargetType::int64, TargetType::float32}) {
    if (name == name_of(type)) return type;
  }
  throw std::invalid_argument(name + " is no type of targets");
}

}  // namespace stoker::python
