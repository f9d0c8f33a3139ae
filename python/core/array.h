// Memory with a shape, which Python libraries use without a copy: DLPack and NumPy's array
// interface. An Array, and every tensor made from it, keeps its Holder. Threads: tensors may be
// dropped on any thread, with or without Python's lock, so no code that runs then calls Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/target.h"

namespace stoker::python {

// Devices and types in DLPack 1.0 (dmlc/dlpack, dlpack.h), whose layout is an ABI.
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

// CUDA's handles of its default streams, which __dlpack__(stream=) also uses as their numbers.
inline constexpr uintptr_t kLegacyStream = 1;
inline constexpr uintptr_t kPerThreadStream = 2;  // another stream on each thread

// Keeps the memory of arrays alive, and orders its readers.
class Holder {
 public:
  virtual ~Holder() = default;
  // Blocks until the bytes have arrived. REQUIRES: called without Python's lock.
  virtual void synchronize() = 0;
  // For GPU memory: what is queued on `stream` (a cudaStream_t) from now on sees the bytes. Before
  // the returned handle is dropped, on any thread, the last reader must be queued there.
  virtual std::shared_ptr<void> read_on(uintptr_t stream) = 0;
  // For GPU memory: copies the bytes to the host. Blocks.
  virtual void copy_to_host(void* target, const void* source, size_t bytes) = 0;
};

// Host memory that it owns.
class HostBytes final : public Holder {
 public:
  explicit HostBytes(size_t bytes);  // throws OutOfMemory
  uint8_t* data() { return bytes_.get(); }
  void synchronize() override {}
  std::shared_ptr<void> read_on(uintptr_t) override { return nullptr; }
  void copy_to_host(void* target, const void* source, size_t bytes) override;

 private:
  const std::unique_ptr<uint8_t[]> bytes_;  // not initialised
};

inline constexpr DlType kUint8 = {static_cast<uint8_t>(DlTypeCode::uint), 8, 1};
inline constexpr DlType kInt32 = {static_cast<uint8_t>(DlTypeCode::int_), 32, 1};
inline constexpr DlType kInt64 = {static_cast<uint8_t>(DlTypeCode::int_), 64, 1};
inline constexpr DlType kFloat32 = {static_cast<uint8_t>(DlTypeCode::float_), 32, 1};
inline constexpr DlType kFloat16 = {static_cast<uint8_t>(DlTypeCode::float_), 16, 1};
inline constexpr DlType kBfloat16 = {static_cast<uint8_t>(DlTypeCode::bfloat), 16, 1};

struct Array {
  std::shared_ptr<Holder> holder;
  void* data = nullptr;
  DlType type;
  DlDevice device;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements

  int64_t size() const;  // elements
  int64_t bytes() const { return size() * type.bits / 8; }
  bool on_host() const { return device.type == static_cast<int32_t>(DlDeviceType::cpu); }
  std::string type_name() const;    // "uint8", "bfloat16"
  std::string device_name() const;  // "cpu", "cuda:0"
  // Returns a compact copy on the host. REQUIRES: called without Python's lock; a dense array.
  Array host_copy() const;
};

// Returns row-major strides.
std::vector<int64_t> compact_strides(const std::vector<int64_t>& shape);

// Makes a new (height, width, 3) uint8 array on the host.
Array make_image(int height, int width);

// Returns row-major values at `data`, without a holder: `outer` extents, then those of the column.
Array target_array(const TargetColumn& column, const void* data, DlDevice device,
                   std::vector<int64_t> outer);

// `name` is NumPy's. Throws std::invalid_argument if targets cannot have that type.
TargetType target_type_named(const std::string& name);

}  // namespace stoker::python
