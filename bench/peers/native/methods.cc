#include "bench/peers/native/method.h"

namespace stoker::peers {

const std::vector<MethodInfo>& methods() {
  static const std::vector<MethodInfo> kMethods = {
      {"stoker-fast", "", make_stoker_fast},
      {"stoker-row-index", "", make_stoker_row_index},
      {"stoker-index-8", "", make_stoker_index_8},
      {"stoker-exact", "", make_stoker_exact},
      {"stoker-exact-row-index", "", make_stoker_exact_row_index},
      {"stoker-exact-index-8", "", make_stoker_exact_index_8},
      {"stock-turbo", libjpeg_version(), make_stock_turbo},
#ifdef STOKER_PEERS_OPENCV
      {"naive", naive_version(), make_naive},
#endif
#ifdef STOKER_PEERS_TURBOJPEG
      {"turbojpeg", libjpeg_version(), make_turbojpeg},
#endif
  };
  return kMethods;
}

}  // namespace stoker::peers
