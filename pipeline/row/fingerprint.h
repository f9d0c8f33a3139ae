// Fingerprints of a feed: numbers that are equal only if what they cover is. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "pipeline/augment.h"
#include "pipeline/loader_types.h"
#include "pipeline/row/device_edits.h"
#include "pipeline/source.h"

namespace stoker {

// Covers what determines the pixels and their order: Loader::fingerprint().
uint64_t pixels_fingerprint(const Source& source, const AugmentSpec& augment,
                            const LoaderOptions& options, int64_t global_batch);

// Covers what a step number means: the pixels, their order, which of them a step holds, and the
// names of the samples, because equal labels do not make equal pictures.
uint64_t resume_fingerprint(const Source& source, const LoaderOptions& options, uint64_t pixels,
                            int64_t global_batch);

// Covers what the rows of this process's devices are, byte for byte, as RemoteFiller makes them:
// all of the above, the version of stoker, and what is left for the devices.
uint64_t rows_fingerprint(const Source& source, const AugmentSpec& augment,
                          const LoaderOptions& options, int devices, const DeviceEdits& edits);

// Returns in words what rows_fingerprint() covers, a line "what: value" each.
std::string rows_facts(const Source& source, const AugmentSpec& augment,
                       const LoaderOptions& options, int devices, const DeviceEdits& edits);

// Samples of a step, over all devices of all ranks.
int64_t global_batch(const LoaderOptions& options, int64_t devices);

}  // namespace stoker
