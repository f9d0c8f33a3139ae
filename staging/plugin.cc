#include "staging/plugin.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

namespace stoker {
namespace {

namespace fs = std::filesystem;

// The folder of the program or library that this function is part of.
fs::path own_folder() {
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

std::vector<fs::path> search_folders() {
  const char* named = std::getenv("STOKER_PLUGIN_DIR");
  if (named != nullptr && *named != '\0') return {named};
  const fs::path own = own_folder();
  // Beside it; installed, from a shared library of ours, and from the program; and where this build
  // was to be installed, for somebody's program that holds our static library.
  return {own, own / "stoker", (own / STOKER_PLUGINS_FROM_PROGRAM).lexically_normal(),
          STOKER_PLUGIN_FOLDER};
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

}  // namespace stoker
