#include "train/collective/process/launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>

#include "staging/plugin.h"
#include "train/collective/process/mpi_plugin.h"

namespace stoker {
namespace {

constexpr int kMaxWorld = 1 << 20;
constexpr int kMaxPort = 65535;

// One launcher's names for the four numbers. The last two are optional, but only together.
struct Names {
  const char* by;
  const char* rank;
  const char* world;
  const char* local_rank;
  const char* local_world;
};
constexpr Names kTorchrun{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kMpirun{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                        "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names kMpiexec{"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
// SLURM_NTASKS does not show a step, because salloc's shell and sbatch's script also have it.
constexpr Names kSrun{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr};

std::string value_of(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

std::optional<int> environment_number(const Environment& environment, const char* name) {
  const std::string text = name ? value_of(environment, name) : "";
  if (text.empty()) return std::nullopt;
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0 || value > kMaxWorld) {
    throw std::invalid_argument(fmt::format(
        "the environment's {} is '{}', not a number from 0 to {}", name, text, kMaxWorld));
  }
  return value;
}

[[noreturn]] void incomplete(const Names& names, const char* there, int value,
                             const char* missing) {
  throw std::invalid_argument(fmt::format(
      "the environment has {} = {} but no {}: {} sets both (unset the one, or start the "
      "processes with a launcher)",
      there, value, missing, names.by));
}

void require_below(const char* what, int value, const char* of, int limit) {
  if (value < limit) return;
  throw std::invalid_argument(
      fmt::format("the environment's {} is {}, but {} is {}", what, value, of, limit));
}

// Returns nothing if the launcher has set none of its variables.
std::optional<Launch> read(const Environment& environment, const Names& names) {
  const auto rank = environment_number(environment, names.rank),
             world = environment_number(environment, names.world);
  if (!rank && !world) return std::nullopt;
  if (!rank) incomplete(names, names.world, *world, names.rank);
  if (!world) incomplete(names, names.rank, *rank, names.world);
  require_below(names.rank, *rank, names.world, *world);
  Launch launch;
  launch.rank = *rank;
  launch.world = *world;
  launch.by = names.by;
  const auto local = environment_number(environment, names.local_rank);
  const auto local_world = environment_number(environment, names.local_world);
  if (names.local_world && local && !local_world) {
    incomplete(names, names.local_rank, *local, names.local_world);
  }
  if (local_world && !local) incomplete(names, names.local_world, *local_world, names.local_rank);
  // Without these variables, all processes are assumed to run on one machine.
  launch.local_rank = local.value_or(launch.rank);
  launch.local_world = local_world.value_or(launch.world);
  if (local_world) {
    require_below(names.local_rank, launch.local_rank, names.local_world, launch.local_world);
    require_below(names.local_world, launch.local_world, names.world, launch.world + 1);
  }
  return launch;
}

// Returns the number of tasks on a node: 1 for "2(x3),1" (Slurm's format) and node 3.
std::optional<int> tasks_on_node(const std::string& list, int node) {
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at < end) {
    int tasks = 0, times = 1;
    auto [stop, error] = std::from_chars(at, end, tasks);
    if (error != std::errc()) return std::nullopt;
    if (std::string_view(stop, static_cast<size_t>(end - stop)).substr(0, 2) == "(x") {
      const auto [close, bad] = std::from_chars(stop + 2, end, times);
      if (bad != std::errc() || close == end || *close != ')') return std::nullopt;
      stop = close + 1;
    }
    if (node < times) return tasks;
    node -= times;
    if (stop < end && *stop != ',') return std::nullopt;
    at = stop < end ? stop + 1 : end;
  }
  return std::nullopt;
}

std::optional<Launch> read_srun(const Environment& environment) {
  if (value_of(environment, kSrun.world).empty()) return std::nullopt;  // not in a step
  std::optional<Launch> launch = read(environment, kSrun);
  const auto local = tasks_on_node(value_of(environment, "SLURM_STEP_TASKS_PER_NODE"),
                                   environment_number(environment, "SLURM_NODEID").value_or(0));
  if (local) {
    require_below("SLURM_LOCALID", launch->local_rank, "SLURM_STEP_TASKS_PER_NODE", *local);
    launch->local_world = *local;
  }
  return launch;
}

std::string text(const Launch& launch) {
  return fmt::format("process {} of {}", launch.rank, launch.world);
}

std::string meeting_address(const Environment& environment, const Launch& launch) {
  const std::string given = value_of(environment, "NCCL_COMM_ID");
  if (!given.empty() || launch.master_address.empty() || launch.master_port == 0) return given;
  const int port = launch.master_port < kMaxPort ? launch.master_port + 1 : launch.master_port - 1;
  std::string host = launch.master_address;
  if (host.find(':') != std::string::npos) host = "[" + host + "]";  // IPv6
  return fmt::format("{}:{}", host, port);
}

std::optional<Launch> read_around(const Environment& environment) {
  if (const auto mpirun = read(environment, kMpirun)) return mpirun;
  const auto mpiexec = read(environment, kMpiexec), srun = read_srun(environment);
  // srun --mpi=pmi2 also sets PMI_RANK, but only Slurm's own variables describe the machines.
  const bool same = mpiexec && srun && mpiexec->rank == srun->rank && mpiexec->world == srun->world;
  return mpiexec && !same ? mpiexec : srun;
}

// If torchrun's variables are set by hand inside another launcher, they must agree with it.
Launch reconcile(const Launch& torch, const std::optional<Launch>& around, bool elastic) {
  if (!around || elastic) return torch;
  if (around->rank == torch.rank && around->world == torch.world) return *around;
  throw std::invalid_argument(fmt::format(
      "the environment contradicts itself: RANK and WORLD_SIZE say {}, the variables of {} say {}; "
      "unset the ones that are left over",
      text(torch), around->by, text(*around)));
}

}  // namespace

Launch find_launch(const Environment& environment) {
  const auto torch = read(environment, kTorchrun);
  const auto around = read_around(environment);
  const bool elastic = !value_of(environment, "TORCHELASTIC_RUN_ID").empty();
  Launch launch = torch ? reconcile(*torch, around, elastic) : around.value_or(Launch{});
  launch.master_address = value_of(environment, "MASTER_ADDR");
  launch.master_port = environment_number(environment, "MASTER_PORT").value_or(0);
  launch.meeting_address = meeting_address(environment, launch);
  const int tasks = environment_number(environment, "SLURM_NTASKS").value_or(1);
  if (launch.by.empty() && tasks > 1) {
    launch.note = fmt::format(
        "the Slurm job has {} tasks, but srun did not start this process: it trains alone", tasks);
  }
  return launch;
}

Environment process_environment() {
  Environment environment;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return environment;
}

// Opens the MPI plugin and checks that its rank and size agree with the launcher's.
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
