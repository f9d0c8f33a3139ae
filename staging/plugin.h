// Opens a plugin: a shared library of stoker with one C entry. It is looked for in
// $STOKER_PLUGIN_DIR if that is set, otherwise beside the program or library that contains this
// code, in LIBDIR/stoker relative to an installed one (in a Python environment: in the package
// stoker_cuda beside the package stoker), and in LIBDIR/stoker of the prefix that the build was
// configured for. It is opened with all symbols resolved and visible to nobody else, and
// never closed (the libraries behind it keep threads). Threads: any.
#pragma once

#include <string>

namespace stoker {

struct Plugin {
  void* entry = nullptr;  // the address of the C function; nullptr: could not be opened
  std::string problem;    // why, in one line
};

Plugin open_plugin(const std::string& file_name, const char* entry_name);

// The first fields of every plugin's table.
struct PluginStamp {
  int version = 0;              // of the table
  const char* build = nullptr;  // STOKER_BUILD_STAMP: the version of stoker and the compiler
};

// Returns why a plugin with this stamp is refused, in one line; empty: it is from this build.
std::string other_build(const std::string& file_name, PluginStamp plugin, PluginStamp wanted);

}  // namespace stoker
