// Targets that vary as Python has them: a list of texts, or an array of all numbers beside one of
// offsets. Threads: with Python's lock held.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "python/core/feed.h"

namespace stoker::python {

// Returns the text, or the list of texts where each is ended by a NUL. Invalid UTF-8 is replaced.
nanobind::object texts_of(std::string_view bytes, bool has_all_texts);

// Sets the entries of a target, of these rows in this order, or of all.
void put_varying(const VaryingTarget& target, const std::optional<std::vector<int64_t>>& rows,
                 nanobind::dict& out);

// Returns (rows, longest row rounded up to a multiple), filled up with a value, and the rows'
// lengths, int64. Throws std::invalid_argument for texts, and for a value that the type cannot
// hold.
std::pair<Array, Array> padded(const VaryingTarget& target, int64_t multiple,
                               const std::variant<int64_t, double>& value);

}  // namespace stoker::python
