#include "staging/plugin.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

namespace stoker {
namespace {

namespace fs = std::filesystem;

// Returns the folder of the program or library that contains this function; "" if it cannot be
// told.
fs::path find_own_folder() {
  std::error_code error;
  Dl_info info{};
  link_map* map = nullptr;
  const int found = dladdr1(reinterpret_cast<void*>(&open_plugin), &info,
                            reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP);
  // The program itself has no name in the list of libraries.
  const bool is_library = found != 0 && map != nullptr && map->l_name[0] != '\0';
  const fs::path file =
      is_library ? fs::canonical(map->l_name, error) : fs::read_symlink("/proc/self/exe", error);
  return file.parent_path();
}

// Found when this code is loaded: a library may have been named relative to the current directory,
// which is another one later, where somebody else's files may be.
const fs::path kOwnFolder = find_own_folder();

std::vector<fs::path> search_folders() {
  const char* named = std::getenv("STOKER_PLUGIN_DIR");
  std::error_code error;
  if (named != nullptr && *named != '\0') return {fs::absolute(named, error)};
  std::vector<fs::path> folders;
  if (!kOwnFolder.empty()) {
    // Beside this code; from an installed shared library of stoker; from an installed program, or
    // from the Python package.
    folders = {kOwnFolder, kOwnFolder / "stoker",
               (kOwnFolder / STOKER_PLUGINS_FROM_PROGRAM).lexically_normal()};
  }
  // The install folder of this build, for a foreign program that links the static library. A
  // Python package has none.
  const std::string_view installed = STOKER_PLUGIN_FOLDER;
  if (!installed.empty()) folders.emplace_back(installed);
  return folders;
}

std::string text_of(const std::vector<fs::path>& folders) {
  std::string text;
  for (const fs::path& folder : folders) text += (text.empty() ? "" : ", ") + folder.string();
  return text;
}

}  // namespace

Plugin open_plugin(const std::string& file_name, const char* entry_name) {
  const std::vector<fs::path> folders = search_folders();
  for (const fs::path& folder : folders) {
    const fs::path path = folder / file_name;
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return {nullptr, file_name + " cannot be opened: " + dlerror()};
    void* entry = dlsym(handle, entry_name);
    if (entry == nullptr) return {nullptr, path.string() + " has no " + entry_name};
    return {entry, ""};
  }
  return {nullptr, file_name + " is not in " + text_of(folders)};
}

std::string other_build(const std::string& file_name, PluginStamp plugin, PluginStamp wanted) {
  if (plugin.version == wanted.version && std::string_view(plugin.build) == wanted.build) return "";
  return file_name + " is from another build of stoker (" + plugin.build + ", table " +
         std::to_string(plugin.version) + ") than what opens it (" + wanted.build + ", table " +
         std::to_string(wanted.version) + "): install all packages of stoker in the same version";
}

}  // namespace stoker
