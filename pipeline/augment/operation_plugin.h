// A user's pixel operation in a shared library, for programs that the user does not compile: the
// library defines it in one line, and open_operation() loads it into any Loader.
//
//   static void invert(stoker::MutableImageView row, const stoker::RandomKey& random) { ... }
//   STOKER_PIXEL_OPERATION("invert,p=0.5", invert)
//
// In CMake: stoker_add_operation(NAME SOURCES...), from the package stoker. The library must be
// built with the headers of the same version of stoker, because C++ types pass between the two.
#pragma once

#include <string>

#include "pipeline/augment/pixel_operation.h"
#include "stoker/version.h"

namespace stoker {

inline constexpr char kOperationEntry[] = "stoker_pixel_operation";

// The result of the library's only C function. It never changes, so that any version can be
// recognised.
struct OperationPlugin {
  const char* version = nullptr;  // STOKER_VERSION of the headers
  const char* name = nullptr;     // PixelOperation::name
  void (*apply)(MutableImageView row, const RandomKey& random) = nullptr;
};

// The library at `path` stays open until the process ends. Threads: any. Throws std::runtime_error
// with the path if it cannot be opened, is no operation, or has another version.
PixelOperation open_operation(const std::string& path);

}  // namespace stoker

// Defines that function. Use it once in a library, outside of any namespace.
#define STOKER_PIXEL_OPERATION(name, apply)                                        \
  extern "C" __attribute__((visibility("default"))) const stoker::OperationPlugin* \
  stoker_pixel_operation() {                                                       \
    static const stoker::OperationPlugin plugin{STOKER_VERSION, name, apply};      \
    return &plugin;                                                                \
  }
