#include "pipeline/store/curl/curl_plugin.h"

#include <stdexcept>
#include <string>

#include "staging/plugin.h"

namespace stoker {
namespace {

struct Opened {
  Opened() {
    const Plugin plugin = open_plugin(kCurlPluginFile, kCurlPluginEntry);
    problem = plugin.problem;
    if (plugin.entry == nullptr) return;
    const CurlPlugin* found = reinterpret_cast<CurlPluginEntry>(plugin.entry)();
    problem = other_build(kCurlPluginFile, {found->version, found->build},
                          {kCurlPluginVersion, STOKER_BUILD_STAMP});
    if (problem.empty()) table = found;
  }
  const CurlPlugin* table = nullptr;
  std::string problem;
};

}  // namespace

const CurlPlugin& curl_plugin() {
  static const Opened opened;
  if (opened.table == nullptr) {
    throw std::runtime_error("data in object stores needs libcurl and OpenSSL: " + opened.problem +
                             " (it uses libcurl4, and is built with libcurl4-openssl-dev and "
                             "libssl-dev)");
  }
  return *opened.table;
}

}  // namespace stoker
