// The interface of libstoker_opencv.so: one C entry, stoker_opencv_plugin(), returns this table. It
// decodes what no reader of ours has (JPEG 2000) with OpenCV, which is opened only when such a file
// comes. A program without the plugin, or on a machine without OpenCV, lacks only that.
//
// Program and plugin must be from one build: `build` identifies it, and a plugin of another build
// is refused. The plugin silences OpenCV's log and makes it use one thread, in the whole process.
// Threads: any.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "decode/image.h"

namespace stoker {

inline constexpr char kOpencvPluginFile[] = "libstoker_opencv.so";
inline constexpr char kOpencvPluginEntry[] = "stoker_opencv_plugin";
inline constexpr int kOpencvPluginVersion = 1;  // of this table

struct OpencvPlugin {
  int version = 0;               // kOpencvPluginVersion; first in every version of the table
  const char* build = nullptr;   // build_stamp() of the plugin's build
  const char* opencv = nullptr;  // its version: "4.6.0"
  // Writes (height, width, 3) u8, RGB. Returns false and a reason in `problem` if OpenCV cannot
  // read the bytes, or finds another size in them.
  bool (*decode)(std::span<const uint8_t> bytes, Size size, uint8_t* rgb,
                 std::string& problem) = nullptr;
};

using OpencvPluginEntry = const OpencvPlugin* (*)();

// Opens it at the first call. Returns nullptr and the problem in one line.
const OpencvPlugin* open_opencv_plugin(std::string& problem);

}  // namespace stoker
