// Where stoker keeps what it could make anew. Threads: any, while nobody changes the environment.
#pragma once

#include <string>

namespace stoker {

// $XDG_CACHE_HOME/stoker, else $HOME/.cache/stoker, else "" (no cache).
std::string default_cache_folder();

}  // namespace stoker
