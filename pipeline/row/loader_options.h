// Checks a Loader's options, and derives the options of its parts. Pure functions.
#pragma once

#include <vector>

#include "pipeline/augment.h"
#include "pipeline/loader_types.h"
#include "pipeline/order/sampler.h"
#include "pipeline/row/device_edits.h"
#include "pipeline/source.h"
#include "staging/batch_layout.h"
#include "staging/device.h"

namespace stoker {

// `devices`: the number of devices of this process.
SamplerOptions sampler_options(const Source& source, const LoaderOptions& options, int devices);

// Returns the columns of DeviceBatch::target(): the source's, and behind them those of mixing, and
// the views after the first.
std::vector<TargetColumn> batch_columns(const Source& source, const AugmentSpec& augment,
                                        const LoaderOptions& options);

// Returns the layout of a device's batches.
BatchLayout batch_layout(const Source& source, const AugmentSpec& augment,
                         const LoaderOptions& options, const DeviceEdits& edits);

// Implements Loader::check().
void check_loader(const Source& source, const AugmentSpec& augment,
                  const std::vector<Device*>& devices, const LoaderOptions& options);

}  // namespace stoker
