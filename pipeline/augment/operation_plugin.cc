#include "pipeline/augment/operation_plugin.h"

#include <dlfcn.h>

#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace stoker {

PixelOperation open_operation(const std::string& path) {
  const auto fail = [&](const std::string& why) -> std::runtime_error {
    return std::runtime_error("operation " + path + ": " + why);
  };
  // A name without a slash would be searched for in the system's library folders.
  std::error_code error;
  const std::filesystem::path file = std::filesystem::absolute(path, error);
  if (path.empty() || !std::filesystem::exists(file, error)) throw fail("there is no such file");
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw fail(std::string("cannot be opened: ") + dlerror());
  void* entry = dlsym(library, kOperationEntry);
  if (entry == nullptr) throw fail(std::string("has no ") + kOperationEntry + "()");
  const OperationPlugin* plugin = reinterpret_cast<const OperationPlugin* (*)()>(entry)();
  if (std::strcmp(plugin->version, STOKER_VERSION) != 0) {
    throw fail(std::string("was built for stoker ") + plugin->version + ", this is " +
               STOKER_VERSION);
  }
  return {plugin->name, plugin->apply};
}

}  // namespace stoker
