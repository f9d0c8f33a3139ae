#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "pipeline/exchange/remote_filler.h"
#include "pipeline/exchange/remote_rows.h"
#include "python/core/bind.h"
#include "python/core/python_lock.h"
#include "python/core/read_stop.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;
using RangeTuple = std::tuple<Step, int32_t, int32_t, int32_t>;  // step, device, first row, rows
using ClaimTuple = std::tuple<int64_t, RangeTuple>;
using EditsTuple = std::tuple<bool, bool>;  // erases, mixes

RangeTuple range_tuple(const RowRange& range) {
  return {range.step, range.device, range.first_row, range.rows};
}
RowRange range_of(const RangeTuple& tuple) {
  const auto& [step, device, first, rows] = tuple;
  return {step, device, first, rows};
}
RowClaim claim_of(const ClaimTuple& tuple) {
  return {std::get<0>(tuple), range_of(std::get<1>(tuple))};
}

// The memory of an object with Python's buffer protocol, while this lives.
class Buffer {
 public:
  Buffer(nb::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nb::python_error();
  }
  ~Buffer() { PyBuffer_Release(&view_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::span<std::byte> span() const {
    return {static_cast<std::byte*>(view_.buf), static_cast<size_t>(view_.len)};
  }

 private:
  Py_buffer view_;
};

std::optional<ClaimTuple> claim(RemoteRows& rows, int claimers, int wait_ms) {
  const Unlocked unlocked;
  const std::optional<RowClaim> claimed = rows.claim(claimers, wait_ms);
  if (!claimed) return {};
  return ClaimTuple{claimed->number, range_tuple(claimed->range)};
}

bool deliver(RemoteRows& rows, const ClaimTuple& claimed, nb::handle message,
             const nb::bytes& bad) {
  const Buffer buffer(message, PyBUF_SIMPLE);
  const std::span packed(reinterpret_cast<const uint8_t*>(bad.c_str()), bad.size());
  const Unlocked unlocked;
  return rows.deliver(claim_of(claimed), buffer.span(), packed);
}

// A RemoteFiller with the source that it reads. Its end ends reads of a program's own code.
class Filler {
 public:
  Filler(const std::shared_ptr<Source>& source, const AugmentSpec& augment,
         const LoaderOptions& options, const EditsTuple& edits, int threads)
      : source_(stoppable(source, ended_)),
        filler_(std::make_unique<RemoteFiller>(
            *source_, augment, options,
            RemoteFillerOptions{
                .threads = threads,
                .edits = {.erases = std::get<0>(edits), .mixes = std::get<1>(edits)}})) {}
  ~Filler() {
    std::optional<Unlocked> unlocked;
    if (holds_python_lock()) unlocked.emplace();
    ended_ = true;
    filler_.reset();
  }
  Filler(const Filler&) = delete;
  Filler& operator=(const Filler&) = delete;
  RemoteFiller& get() const { return *filler_; }

 private:
  std::atomic<bool> ended_{false};
  const std::shared_ptr<const Source> source_;
  std::unique_ptr<RemoteFiller> filler_;
};

nb::bytes fill(const Filler& filler, const RangeTuple& range, nb::handle message) {
  const Buffer buffer(message, PyBUF_WRITABLE);
  std::vector<uint8_t> bad;
  {
    const Unlocked unlocked;
    bad = filler.get().fill(range_of(range), buffer.span());
  }
  return nb::bytes(bad.data(), bad.size());
}

}  // namespace

void bind_remote(nb::module_& module) {
  const auto claim_type = nb::sig(
      "def claim(self, claimers: int, wait_ms: int) -> tuple[int, tuple[int, int, int, int]] | "
      "None");
  nb::class_<RemoteRows>(module, "RemoteRows")
      .def("claim", claim, "claimers"_a, "wait_ms"_a, claim_type)
      .def("deliver", deliver, "claim"_a, "message"_a, "bad"_a,
           nb::sig("def deliver(self, claim: tuple[int, tuple[int, int, int, int]], message: "
                   "object, bad: bytes) -> bool"))
      .def(
          "give_up",
          [](RemoteRows& rows, const ClaimTuple& claimed) { rows.give_up(claim_of(claimed)); },
          nb::call_guard<Unlocked>(), "claim"_a)
      .def(
          "give_up_if_late",
          [](RemoteRows& rows, const ClaimTuple& claimed) {
            return rows.give_up_if_late(claim_of(claimed));
          },
          nb::call_guard<Unlocked>(), "claim"_a)
      .def("fail", &RemoteRows::fail, nb::call_guard<Unlocked>(), "problem"_a)
      .def_prop_ro("fingerprint", &RemoteRows::fingerprint)
      .def_prop_ro("ended", &RemoteRows::ended);
  nb::class_<Filler>(module, "RemoteFiller")
      .def(nb::init<const std::shared_ptr<Source>&, const AugmentSpec&, const LoaderOptions&,
                    const EditsTuple&, int>(),
           "source"_a, "augment"_a, "options"_a, "edits"_a, "threads"_a, nb::call_guard<Unlocked>())
      .def_prop_ro("fingerprint", [](const Filler& filler) { return filler.get().fingerprint(); })
      .def(
          "message_bytes",
          [](const Filler& filler, int rows) { return filler.get().message_bytes(rows); }, "rows"_a)
      .def("fill", fill, "range"_a, "message"_a,
           nb::sig("def fill(self, range: tuple[int, int, int, int], message: object) -> bytes"));
}

}  // namespace stoker::python
