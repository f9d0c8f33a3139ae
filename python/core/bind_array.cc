#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "python/core/bind.h"
#include "python/core/export.h"
#include "python/core/unlocked.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

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
