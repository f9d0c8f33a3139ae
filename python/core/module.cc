#include "python/core/bind.h"

NB_MODULE(_core, module) {
  module.doc() = "stoker's C++ library, as the Python package uses it.";
  // What is alive when the interpreter goes is nobody's leak: a loop's variables, for example.
  nanobind::set_leak_warnings(false);
  stoker::python::bind_accelerator(module);
  stoker::python::bind_array(module);
  stoker::python::bind_options(module);
  stoker::python::bind_source(module);
  stoker::python::bind_image(module);
  stoker::python::bind_index(module);
  stoker::python::bind_feed(module);
}
