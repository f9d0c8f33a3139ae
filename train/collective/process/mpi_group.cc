// Opens the MPI plugin and checks that its rank and size agree with the launcher's.
#include <fmt/format.h>

#include <stdexcept>

#include "staging/plugin.h"
#include "train/collective/process/mpi_plugin.h"

namespace stoker {

std::unique_ptr<ProcessGroup> open_mpi_group(const Launch& launch) {
  const std::string start =
      fmt::format("{} started {} processes, which speak through MPI, ", launch.by, launch.world);
  const Plugin plugin = open_plugin(kMpiPluginFile, kMpiPluginEntry);
  if (!plugin.entry) throw std::runtime_error(start + "but " + plugin.problem);
  const MpiPlugin* table = reinterpret_cast<MpiPluginEntry>(plugin.entry)();
  if (table->version != kMpiPluginVersion) {
    throw std::runtime_error(
        fmt::format("{}but {} is of another build: its table is version {}, not {}", start,
                    kMpiPluginFile, table->version, kMpiPluginVersion));
  }
  auto group = table->open();
  if (group->size() == launch.world && group->rank() == launch.rank) return group;
  const std::string found = fmt::format(
      "but {} counts this one as process {} of {}, and the environment says {} of {}: "
      "start them with the mpirun of that MPI, or with srun --mpi=pmix",
      table->library(), group->rank(), group->size(), launch.rank, launch.world);
  throw std::invalid_argument(start + found);
}

}  // namespace stoker
