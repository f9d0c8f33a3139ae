// The module's parts: each adds its classes and functions to `module`. Their users' documentation
// is in python/stoker/*.py.
#pragma once

#include <nanobind/nanobind.h>

#include <tuple>

namespace stoker::python {

using SizeTuple = std::tuple<int, int>;  // height, width

void bind_accelerator(nanobind::module_& module);
void bind_array(nanobind::module_& module);
void bind_augment(nanobind::module_& module);
void bind_options(nanobind::module_& module);
void bind_source(nanobind::module_& module);
void bind_dataset(nanobind::module_& module);  // REQUIRES: bind_source
void bind_open(nanobind::module_& module);     // REQUIRES: bind_options, bind_source
void bind_order(nanobind::module_& module);    // REQUIRES: bind_options, bind_source
void bind_image(nanobind::module_& module);
void bind_index(nanobind::module_& module);   // REQUIRES: bind_source
void bind_remote(nanobind::module_& module);  // REQUIRES: bind_augment, bind_options, bind_source
void bind_feed(nanobind::module_& module);    // REQUIRES: all of the above

}  // namespace stoker::python
