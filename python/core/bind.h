// The module's parts: each adds its classes and functions to `module`. Their users' documentation
// is in python/stoker/*.py.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <tuple>

#include "pipeline/sample_order.h"
#include "pipeline/source.h"
#include "pipeline/step_shapes.h"

namespace stoker::python {

using SizeTuple = std::tuple<int, int>;  // height, width

// Sources as nanobind holds them: by pointers that are not const. A Source is const for all its
// users.
using SharedSource = std::shared_ptr<Source>;

inline SharedSource shared(std::shared_ptr<const Source> source) {
  return std::const_pointer_cast<Source>(std::move(source));
}

// An order of samples as Python holds it: by value, so that a Loader's threads keep the C++ order
// and no Python object.
struct BoundOrder {
  SharedOrder order;
};

// The buckets of a source, also by value.
struct BoundBuckets {
  SharedBuckets buckets;
};

void bind_accelerator(nanobind::module_& module);
void bind_array(nanobind::module_& module);
void bind_augment(nanobind::module_& module);
void bind_options(nanobind::module_& module);
void bind_source(nanobind::module_& module);
void bind_dataset(nanobind::module_& module);  // REQUIRES: bind_source
void bind_open(nanobind::module_& module);     // REQUIRES: bind_options, bind_source
void bind_order(nanobind::module_& module);    // REQUIRES: bind_options, bind_source
void bind_annotations(nanobind::module_& module);
void bind_views(nanobind::module_& module);  // REQUIRES: bind_source, bind_annotations
void bind_image(nanobind::module_& module);
void bind_index(nanobind::module_& module);   // REQUIRES: bind_source
void bind_remote(nanobind::module_& module);  // REQUIRES: bind_augment, bind_options, bind_source
void bind_feed(nanobind::module_& module);    // REQUIRES: all of the above

}  // namespace stoker::python
