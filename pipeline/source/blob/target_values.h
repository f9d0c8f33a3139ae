// Turns the numbers that a format found into the values of a column of targets. Functions of their
// arguments alone. Threads: any.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "pipeline/source/format/found_target.h"
#include "pipeline/source/format/sample_sink.h"

namespace stoker {

// Returns the column that a first sample decides.
TargetColumn column_of(const TargetField& field, const FoundTarget& found);

// Appends the values of one sample: column.bytes() bytes, row-major. A number with a fraction is
// rounded to float32. Returns "" or what is wrong ("has the shape (3), and the first sample has
// (4)"): another shape, or a number that the column's type cannot hold.
std::string append_target(const TargetColumn& column, const FoundTarget& found,
                          std::vector<std::byte>& out);
// The same for a column that varies: its texts, or a list of any number of numbers.
std::string append_varying(const TargetColumn& column, const FoundTarget& found,
                           std::vector<std::byte>& out);

}  // namespace stoker
