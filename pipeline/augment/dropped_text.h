// The stage drop_text, for who makes the texts of a row: they become empty where it is applied to
// the row's own sample. Implemented in stage/drop_text.cc. Pure functions; any thread.
#pragma once

#include <cstdint>

#include "pipeline/augment/stage.h"

namespace stoker {

// Whether a list empties the texts of this sample. `seed` as for Stage::own_key().
bool drops_text(const StageList& stages, uint64_t seed, int64_t epoch, int64_t sample);
bool has_drop_text(const StageList& stages);
// Whether one stands inside of another stage, where nobody asks it.
bool hides_drop_text(const StageList& stages);

}  // namespace stoker
