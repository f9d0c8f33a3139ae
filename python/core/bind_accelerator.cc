#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/core/bind.h"
#include "tools/emulate/accelerator.h"

namespace nb = nanobind;

namespace stoker::python {

void bind_accelerator(nb::module_& module) {
  nb::class_<AcceleratorSpec>(module, "AcceleratorSpec")
      .def_ro("name", &AcceleratorSpec::name)
      .def_ro("batch", &AcceleratorSpec::batch, "Samples of a step.")
      .def_ro("step_seconds", &AcceleratorSpec::step_seconds)
      .def_ro("source", &AcceleratorSpec::source, "Where the figure comes from.")
      .def_ro("pass_utilisation", &AcceleratorSpec::pass)
      .def_prop_ro("images_per_second", &AcceleratorSpec::images_per_second);
  module.def("find_accelerator", &find_accelerator, nb::arg("name"));
  module.def("accelerator_of_rate", &accelerator_of_rate, nb::arg("images_per_second"),
             nb::arg("batch"));

  nb::class_<Utilisation>(module, "Utilisation")
      .def_ro("share", &Utilisation::share)
      .def_ro("running_seconds", &Utilisation::running_seconds)
      .def_ro("waiting_seconds", &Utilisation::waiting_seconds)
      .def_ro("steps", &Utilisation::steps);
  module.def(
      "utilisation",
      [](const std::vector<double>& asked, const std::vector<double>& came,
         const std::vector<double>& done, double step_seconds) {
        std::vector<StepTimes> steps;
        for (size_t i = 0; i < done.size(); ++i) {
          steps.push_back({asked[i], came[i], done[i], {.done = done[i]}});
        }
        return utilisation(steps, step_seconds);
      },
      nb::arg("asked"), nb::arg("came"), nb::arg("done"), nb::arg("step_seconds"),
      "By MLPerf Storage's rules, of steps in seconds of one clock; lists of one length.");
}

}  // namespace stoker::python
