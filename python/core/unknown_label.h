// Labels that are known only when their sample has been read (dataset_source.h). Source::label()
// gives 0 for such a label, and notes here, for its thread, that this is not the label: so a caller
// who needs the label itself learns that it is not known, also through views of the source.
#pragma once

#include "pipeline/source.h"

namespace stoker::python {

void note_unknown_label();
// Returns whether a label that is not known was asked for on this thread since the last call.
bool take_unknown_label();

// Returns the label; one that is not known is read now, which may take long. Throws
// UnreadableSample.
int read_label(const std::shared_ptr<const Source>& source, SampleId id);
// Returns all labels. Throws std::invalid_argument if one is not known.
std::vector<int32_t> known_labels(const Source& source);

}  // namespace stoker::python
