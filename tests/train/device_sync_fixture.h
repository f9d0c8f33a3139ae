// Device engines whose batch norms are synchronised, for tests. A value.
#pragma once

#include <memory>

#include "tests/train/sync_norm_fixture.h"
#include "train/collective/device_norm_exchange.h"

namespace stoker {

class DeviceReplicas {
 public:
  // `make` gets the options of each replica.
  DeviceReplicas(const NetSpec& net, const SyncShape& shape, Precision precision,
                 const SyncReplicas::Make& make, bool synchronised = true) {
    auto norms = std::make_unique<DeviceNormExchange>(shape.replicas, most_numbers(net));
    engines_ = std::make_unique<SyncReplicas>(net, shape, precision, [&](EngineOptions options) {
      if (synchronised) options.device_norms = norms.get();
      return make(options);
    });
    norms_ = std::move(norms);
  }

  SyncReplicas& all() { return *engines_; }
  SyncReplicas* operator->() { return engines_.get(); }
  Engine& operator[](int rank) { return (*engines_)[rank]; }
  DeviceNormExchange& norms() { return *norms_; }

 private:
  std::unique_ptr<SyncReplicas> engines_;
  std::unique_ptr<DeviceNormExchange> norms_;  // goes first
};

}  // namespace stoker
