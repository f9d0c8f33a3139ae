#include "python/core/export.h"

#include <nanobind/stl/string.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "python/core/unlocked.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;

// The memory behind a capsule, held by its consumer.
template <typename Managed>
struct Exported {
  Managed managed;
  Array array;                   // keeps the memory, its shape and strides
  std::shared_ptr<void> reader;  // on a GPU's stream; destroyed before the memory

  static void release(Managed* self) {
    auto* exported = static_cast<Exported*>(self->context);
    exported->reader.reset();
    delete exported;
  }
};

DlTensor tensor_of(Array& array) {
  return {.data = array.data,
          .device = array.device,
          .ndim = static_cast<int32_t>(array.shape.size()),
          .type = array.type,
          .shape = array.shape.data(),
          .strides = array.strides.data()};
}

// A capsule that nobody took over still has its original name.
template <typename Managed>
void destroy_unused(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

void destroy_plain(PyObject* capsule) { destroy_unused<DlManaged>(capsule, "dltensor"); }
void destroy_versioned(PyObject* capsule) {
  destroy_unused<DlManagedVersioned>(capsule, "dltensor_versioned");
}

template <typename Managed>
std::unique_ptr<Exported<Managed>> make_exported(Array array, std::shared_ptr<void> reader) {
  auto exported = std::make_unique<Exported<Managed>>();
  exported->array = std::move(array);
  exported->reader = std::move(reader);
  exported->managed.tensor = tensor_of(exported->array);
  exported->managed.context = exported.get();
  exported->managed.deleter = &Exported<Managed>::release;
  return exported;
}

template <typename Managed>
nb::object make_capsule(std::unique_ptr<Exported<Managed>> exported, const char* name,
                        PyCapsule_Destructor destructor) {
  PyObject* capsule = PyCapsule_New(&exported->managed, name, destructor);
  if (capsule == nullptr) throw nb::python_error();
  (void)exported.release();
  return nb::steal<nb::object>(capsule);
}

// Makes the bytes visible to the consumer: blocks on the host, orders the stream on a GPU.
std::shared_ptr<void> hand_over(const Array& array, std::optional<int64_t> stream) {
  if (array.on_host()) {
    if (stream && *stream != -1) {
      throw std::invalid_argument("__dlpack__: stream=" + std::to_string(*stream) +
                                  " for an array on the host, which has no streams: leave it out");
    }
    array.holder->synchronize();
    return nullptr;
  }
  if (stream && (*stream == 0 || *stream < -1)) {
    throw std::invalid_argument("__dlpack__: stream=" + std::to_string(*stream) +
                                " is not allowed for CUDA: 1 is the legacy default stream, 2 the "
                                "per-thread one, -1 none");
  }
  if (stream && *stream == -1) {  // the consumer orders by itself, so the bytes must be there now
    array.holder->synchronize();
    return nullptr;
  }
  return array.holder->read_on(stream ? static_cast<uintptr_t>(*stream) : kLegacyStream);
}

bool must_copy(const Array& array, const DlpackRequest& request) {
  const std::pair<int, int> here = {array.device.type, array.device.id};
  const std::pair<int, int> host = {static_cast<int>(DlDeviceType::cpu), 0};
  const std::pair<int, int> there = request.device.value_or(here);
  const auto refuse = [&](const std::string& why) {
    throw nb::buffer_error(
        ("__dlpack__: the array is on " + array.device_name() + "; " + why).c_str());
  };
  if (there != here && there != host) {
    refuse("it is not available on the device (" + std::to_string(there.first) + ", " +
           std::to_string(there.second) + ")");
  }
  const bool moves = there != here;
  if (moves && request.copy.has_value() && !*request.copy) {
    refuse("on the host it would be a copy, and copy=False");
  }
  const bool copies = moves || request.copy.value_or(false);
  if (copies && !moves && !array.on_host()) {
    refuse("copy=True is not done there: clone it");
  }
  return copies;
}

}  // namespace

nb::object to_dlpack(const Array& array, const DlpackRequest& request) {
  const bool copies = must_copy(array, request);
  Array given = array;
  std::shared_ptr<void> reader;
  {
    Unlocked unlocked;
    if (copies) {
      array.holder->synchronize();
      given = array.host_copy();
    } else {
      reader = hand_over(array, request.stream);
    }
  }
  if (request.max_version && request.max_version->first >= 1) {
    auto exported = make_exported<DlManagedVersioned>(std::move(given), std::move(reader));
    if (copies) exported->managed.flags = kDlFlagCopied;
    return make_capsule(std::move(exported), "dltensor_versioned", destroy_versioned);
  }
  return make_capsule(make_exported<DlManaged>(std::move(given), std::move(reader)), "dltensor",
                      destroy_plain);
}

nb::dict array_interface(const Array& array) {
  if (!array.on_host()) {
    throw nb::type_error(("the array is on " + array.device_name() +
                          ", which NumPy cannot read: take it by DLPack, or bring it to the host "
                          "by .cpu()")
                             .c_str());
  }
  if (array.type == kBfloat16) {
    throw nb::type_error("NumPy has no bfloat16: take the array by DLPack (torch, jax)");
  }
  {
    Unlocked unlocked;
    array.holder->synchronize();
  }
  const int bytes = array.type.bits / 8;
  const char kind = array.type.code == static_cast<uint8_t>(DlTypeCode::uint)   ? 'u'
                    : array.type.code == static_cast<uint8_t>(DlTypeCode::int_) ? 'i'
                                                                                : 'f';
  nb::list shape, strides;
  for (const int64_t extent : array.shape) shape.append(extent);
  for (const int64_t stride : array.strides) strides.append(stride * bytes);
  nb::dict interface;
  interface["version"] = 3;
  interface["shape"] = nb::tuple(shape);
  interface["strides"] = nb::tuple(strides);
  interface["typestr"] = std::string(1, bytes == 1 ? '|' : '<') + kind + std::to_string(bytes);
  interface["data"] = nb::make_tuple(reinterpret_cast<uintptr_t>(array.data), false);
  return interface;
}

}  // namespace stoker::python
