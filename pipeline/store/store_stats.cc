#include "pipeline/store/store_stats.h"

namespace stoker {

StoreStats joined(const StoreStats& a, const StoreStats& b) {
  StoreStats all = a.bytes >= b.bytes ? a : b;
  const StoreStats& other = a.bytes >= b.bytes ? b : a;
  all.requests += other.requests;
  all.ranges += other.ranges;
  all.bytes += other.bytes;
  all.bytes_carried += other.bytes_carried;
  all.retries += other.retries;
  all.throttled += other.throttled;
  all.second_requests += other.second_requests;
  all.second_requests_won += other.second_requests_won;
  all.failed += other.failed;
  return all;
}

}  // namespace stoker
