// A part of libstoker_avif.so: dav1d prints an error for each damaged file, and before version 1.4
// libavif does not let it be told otherwise. libavif's calls look for a function of this name in
// the plugin first, because it opened libavif; for anybody else in the process dav1d stays as it
// is.
#include <dav1d/dav1d.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

extern "C" __attribute__((visibility("default"))) void dav1d_default_settings(
    Dav1dSettings* settings) {
  using Function = void (*)(Dav1dSettings*);
  static const auto original =
      reinterpret_cast<Function>(dlsym(RTLD_NEXT, "dav1d_default_settings"));
  if (original == nullptr) {
    std::fprintf(stderr, "stoker: libavif's dav1d has no dav1d_default_settings()\n");
    std::abort();
  }
  original(settings);
  settings->logger = {nullptr, nullptr};
}
