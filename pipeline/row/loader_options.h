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

// Returns the augmentation for each of the sizes that steps may have (Sampler::sizes()): the one
// that is given where all steps have its size.
std::vector<AugmentSpec> row_specs(const AugmentSpec& augment, const LoaderOptions& options);

// Returns the columns of DeviceBatch::target(): the source's, and behind them those of offsets, of
// annotations and of mixing, and the views after the first. Shapes in pixels are those of this
// augmentation's rows.
std::vector<TargetColumn> batch_columns(const Source& source, const AugmentSpec& augment,
                                        const LoaderOptions& options);

// Returns the layout of a device's batches, in which rows of each shape have room.
BatchLayout batch_layout(const Source& source, const AugmentSpec& augment,
                         const LoaderOptions& options, const DeviceEdits& edits);

// Implements Loader::check().
void check_loader(const Source& source, const AugmentSpec& augment,
                  const std::vector<Device*>& devices, const LoaderOptions& options);

}  // namespace stoker
