// The folder for data that stoker can make again. Threads: any, while nobody changes the
// environment.
#pragma once

#include <string>

namespace stoker {

// Returns $XDG_CACHE_HOME/stoker, else $HOME/.cache/stoker, else "" (no cache).
std::string default_cache_folder();

}  // namespace stoker
