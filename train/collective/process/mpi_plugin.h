// The interface of libstoker_mpi.so: one C entry, stoker_mpi_plugin(), which returns this table.
// Program and plugin must come from one build, because the table contains C++ types. Threads: any.
#pragma once

#include <memory>
#include <string>

#include "train/collective/process/process_group.h"

namespace stoker {

inline constexpr char kMpiPluginFile[] = "libstoker_mpi.so";
inline constexpr char kMpiPluginEntry[] = "stoker_mpi_plugin";
inline constexpr int kMpiPluginVersion = 2;  // of this table

struct MpiPlugin {
  int version = 0;                     // kMpiPluginVersion; first in every version of the table
  std::string (*library)() = nullptr;  // "Open MPI v4.1.4"
  // Starts MPI; call it once in a process. Throws std::runtime_error.
  std::unique_ptr<ProcessGroup> (*open)() = nullptr;
};

using MpiPluginEntry = const MpiPlugin* (*)();

}  // namespace stoker
