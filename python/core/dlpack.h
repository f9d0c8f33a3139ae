// The structures of DLPack 1.0 that are passed between libraries in a capsule (dmlc/dlpack,
// dlpack.h). Only their layout, which is an ABI, is here.
#pragma once

#include <cstdint>

namespace stoker::python {

enum class DlDeviceType : int32_t { cpu = 1, cuda = 2 };
enum class DlTypeCode : uint8_t { int_ = 0, uint = 1, float_ = 2, bfloat = 4 };

struct DlDevice {
  int32_t type = static_cast<int32_t>(DlDeviceType::cpu);
  int32_t id = 0;
  bool operator==(const DlDevice&) const = default;
};

struct DlType {
  uint8_t code = 0;
  uint8_t bits = 0;
  uint16_t lanes = 1;
  bool operator==(const DlType&) const = default;
};

struct DlTensor {
  void* data = nullptr;
  DlDevice device;
  int32_t ndim = 0;
  DlType type;
  int64_t* shape = nullptr;
  int64_t* strides = nullptr;  // in elements
  uint64_t byte_offset = 0;
};

struct DlManaged {  // capsule "dltensor"
  DlTensor tensor;
  void* context = nullptr;
  void (*deleter)(DlManaged* self) = nullptr;
};

struct DlManagedVersioned {  // capsule "dltensor_versioned"
  uint32_t major = 1;
  uint32_t minor = 0;
  void* context = nullptr;
  void (*deleter)(DlManagedVersioned* self) = nullptr;
  uint64_t flags = 0;
  DlTensor tensor;
};

inline constexpr uint64_t kDlFlagCopied = 2;

// CUDA's handles of its default streams, which __dlpack__(stream=) also uses as their numbers.
inline constexpr uintptr_t kLegacyStream = 1;
inline constexpr uintptr_t kPerThreadStream = 2;  // another stream on each thread

}  // namespace stoker::python
