// The interface of the plugins that decode what no reader of ours has: libstoker_openjpeg.so (JPEG
// 2000 with OpenJPEG) and libstoker_avif.so (AVIF with libavif). One C entry,
// stoker_codec_plugin(), returns this table. A plugin is opened when the first file of its format
// comes, so that only who has such files pays for its libraries. A program without it, or on a
// machine without them, lacks only that format.
//
// Program and plugin must be from one build: `build` identifies it, and a plugin of another build
// is refused. A plugin makes its library use one thread and print nothing, in the whole process.
// Threads: any.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "decode/image.h"
#include "decode/image_decoder.h"

namespace stoker {

inline constexpr char kCodecPluginEntry[] = "stoker_codec_plugin";
inline constexpr int kCodecPluginVersion = 1;  // of this table

struct CodecPlugin {
  int version = 0;                // kCodecPluginVersion; first in every version of the table
  const char* build = nullptr;    // build_stamp() of the plugin's build
  const char* library = nullptr;  // the version of its library: "2.5.0"
  // Writes (height, width, 3) u8, RGB. Returns false and a reason in `problem` if the library
  // cannot read the bytes, or finds another size in them.
  bool (*decode)(std::span<const uint8_t> bytes, Size size, uint8_t* rgb,
                 std::string& problem) = nullptr;
};

using CodecPluginEntry = const CodecPlugin* (*)();

// The name of a format's plugin, and the libraries that it needs.
struct CodecPluginName {
  const char* format;   // "JPEG 2000"
  const char* library;  // "OpenJPEG"
  const char* package;  // of Debian, for building the plugin
  const char* file;     // "libstoker_openjpeg.so"
};

// Opens the plugin of a format at the first call. Returns nullptr and the problem in one line.
// REQUIRES: the format is one that a plugin decodes.
const CodecPlugin* open_codec_plugin(ImageFormat format, std::string& problem);
const CodecPluginName& codec_plugin_name(ImageFormat format);

}  // namespace stoker
