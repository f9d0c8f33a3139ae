// Array as a class of Python, and how other libraries take its memory: DLPack capsules, NumPy's
// array interface. Threads: with Python's lock held; the deleters of exported objects need no lock.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <stdexcept>

#include "python/core/array.h"
#include "python/core/bind.h"
#include "python/core/python_lock.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// The structures of DLPack 1.0 that are passed between libraries in a capsule. Only their layout,
// which is an ABI, is here.
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

struct DlpackRequest {
  std::optional<int64_t> stream;                   // numbers as in the array API standard
  std::optional<std::pair<int, int>> max_version;  // none: a capsule without a version
  std::optional<std::pair<int, int>> device;       // none: the array's device
  std::optional<bool> copy;                        // none: only if necessary
};

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

// Throws nanobind's BufferError for a device or copy that is not supported, std::invalid_argument
// for a stream that does not fit the device.
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

// Throws TypeError for memory that is not on the host, and for bfloat16, which NumPy lacks.
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

nb::tuple shape_tuple(const Array& array) {
  nb::list shape;
  for (const int64_t extent : array.shape) shape.append(extent);
  return nb::tuple(shape);
}

std::string array_text(const Array& array) {
  std::string shape;
  for (const int64_t extent : array.shape) {
    shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
  }
  return "stoker.Array((" + shape + "), " + array.type_name() + ", " + array.device_name() + ")";
}

// Returns NumPy's array on the same memory, which the array then keeps.
nb::object numpy_of(nb::handle array) {
  return nb::module_::import_("numpy").attr("asarray")(array);
}

Array on_host(const Array& array) {
  if (array.on_host()) return array;
  Unlocked unlocked;
  return array.host_copy();
}

}  // namespace

void bind_array(nb::module_& module) {
  nb::class_<Array>(module, "Array",
                    "Pixels, labels, weights or ids in memory that stoker keeps: what batches and "
                    "decode() give.\n\n"
                    "Take it without a copy by torch.from_dlpack(a), jax.numpy.from_dlpack(a), "
                    "cupy.from_dlpack(a), or, on the host, numpy.asarray(a). What is taken keeps "
                    "the memory: a batch's slot is not filled again before all of it is gone.\n\n"
                    "a[i], a[2:5, :, 0] and iterating give what NumPy's array gives, of the same "
                    "memory: for a look at the values, a plot, a print. Like numpy(), they raise "
                    "TypeError for arrays on a GPU, which cpu() copies, and for bfloat16.")
      .def_prop_ro("shape", shape_tuple, "Extents, as a tuple of int.",
                   nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "ndim", [](const Array& array) { return array.shape.size(); }, "Number of extents.")
      .def_prop_ro("size", &Array::size, "Number of elements.")
      .def_prop_ro("nbytes", &Array::bytes, "Number of bytes.")
      .def_prop_ro("dtype", &Array::type_name,
                   "'uint8', 'int32', 'int64', 'float16', 'float32' or 'bfloat16'.")
      .def_prop_ro("device", &Array::device_name, "'cpu' or 'cuda:N'.")
      .def("cpu", on_host,
           "The array itself if it is on the host, else a copy there. Blocks until it is there.")
      .def("numpy", numpy_of,
           "The same memory as NumPy's array; numpy.asarray(a) does the same. TypeError: it is on "
           "a GPU, or bfloat16.",
           nb::sig("def numpy(self) -> numpy.typing.NDArray[typing.Any]"))
      .def(
          "tolist", [](nb::handle array) { return nb::object(numpy_of(array).attr("tolist")()); },
          "The values as nested lists of Python's numbers. TypeError: as numpy().",
          nb::sig("def tolist(self) -> list[typing.Any]"))
      .def(
          "__getitem__",
          [](nb::handle array, nb::handle key) { return nb::object(numpy_of(array)[key]); },
          "numpy()[key].", nb::sig("def __getitem__(self, key: typing.Any, /) -> typing.Any"))
      .def(
          "__iter__", [](nb::handle array) { return nb::iter(numpy_of(array)); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[typing.Any]"))
      .def("__len__", [](const Array& array) { return array.shape.at(0); })
      .def("__repr__", array_text)
      .def(
          "__dlpack__",
          [](const Array& array, std::optional<int64_t> stream,
             std::optional<std::pair<int, int>> max_version,
             std::optional<std::pair<int, int>> dl_device, std::optional<bool> copy) {
            return to_dlpack(array, {stream, max_version, dl_device, copy});
          },
          nb::kw_only(), "stream"_a = nb::none(), "max_version"_a = nb::none(),
          "dl_device"_a = nb::none(), "copy"_a = nb::none(),
          "A DLPack capsule, as the array API standard has it.\n\n"
          "On a GPU `stream` is the consumer's (1, or none: the legacy default stream; 2: the "
          "calling thread's own; else a cudaStream_t): work queued on it from now on sees the "
          "bytes, and when the last tensor is dropped, the slot is filled again behind the work "
          "queued on it by then. With -1 the call waits for the bytes, and the consumer must have "
          "finished when it drops the tensor. On the host the call waits, and takes no stream.\n\n"
          "BufferError: a device or copy that cannot be had. ValueError: a stream that does not "
          "fit the device.",
          nb::sig("def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] "
                  "| None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = "
                  "None) -> typing.Any"))
      .def(
          "__dlpack_device__",
          [](const Array& array) { return nb::make_tuple(array.device.type, array.device.id); },
          "(1, 0) on the host, (2, N) on cuda:N.",
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def_prop_ro("__array_interface__", array_interface,
                   "NumPy's way in: numpy.asarray(a) shares the memory. TypeError for arrays on a "
                   "GPU and for bfloat16.",
                   nb::sig("def __array_interface__(self) -> dict[str, object]"));
}

}  // namespace stoker::python
