// An operation on pixels in a shared library of one's own, for programs that one does not compile:
// the library defines it in one line, open_operation() loads it into any Loader.
//
//   static void invert(stoker::MutableImageView row, const stoker::RandomKey& random) { ... }
//   STOKER_PIXEL_OPERATION("invert,p=0.5", invert)
//
// In CMake: stoker_add_operation(NAME SOURCES...), of the package stoker. The library must come
// from the headers of the same version of stoker, for C++ types pass between the two.
#pragma once

#include <string>

#include "pipeline/augment.h"
#include "stoker/version.h"

namespace stoker {

inline constexpr char kOperationEntry[] = "stoker_pixel_operation";

// What the library's one C entry returns. Never changes, so that any version can be told.
struct OperationPlugin {
  const char* version = nullptr;  // STOKER_VERSION of the headers
  const char* name = nullptr;     // PixelOperation::name
  void (*apply)(MutableImageView row, const RandomKey& random) = nullptr;
};

// The library at `path` stays open until the process ends. Threads: any. Throws std::runtime_error
// with the path: it cannot be opened, is no operation, or is of another version.
PixelOperation open_operation(const std::string& path);

}  // namespace stoker

// Defines the entry. Once in a library, outside of any namespace.
#define STOKER_PIXEL_OPERATION(name, apply)                                        \
  extern "C" __attribute__((visibility("default"))) const stoker::OperationPlugin* \
  stoker_pixel_operation() {                                                       \
    static const stoker::OperationPlugin plugin{STOKER_VERSION, name, apply};      \
    return &plugin;                                                                \
  }
