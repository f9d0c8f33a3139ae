// Which changes of finished rows are left to the device, which makes them behind the copy of a
// batch (staging/row_edits.h): random erasing and mixing. The pixels are the same either way. On a
// GPU it takes the workers less time; a host device's batches are leased in place, and there the
// workers do all of it. Pure functions; any thread.
#pragma once

#include <vector>

#include "pipeline/augment.h"
#include "pipeline/augment/erasing.h"
#include "pipeline/loader_types.h"
#include "staging/device.h"
#include "staging/row_edits.h"

namespace stoker {

struct DeviceEdits {
  bool erases = false;  // the last stage, which is random_erasing
  bool mixes = false;
  bool any() const { return erases || mixes; }
  bool operator==(const DeviceEdits&) const = default;
};

// The rule: everything that comes last, if no device's memory can be read by the host, there is one
// view, and the host need not know the final pixels, to convert them or for their digests.
DeviceEdits device_edits(const AugmentSpec& augment, const std::vector<Device*>& devices,
                         const LoaderOptions& options);

// Returns what is left for the workers.
AugmentSpec without(const AugmentSpec& augment, const DeviceEdits& edits);

// Say the same in the words of staging/.
void set_erasing(const Erasing& erasing, RowEdit& edit);
void set_mixing(const MixDraw& draw, RowEdit& edit);

}  // namespace stoker
