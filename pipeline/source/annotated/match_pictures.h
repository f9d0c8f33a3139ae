// Finds the annotations of samples by their names. A sample is a picture of a set if one's path
// ends with the other's, with or without the extensions: "train2017/1.jpg" and "1.jpg",
// "shard-3/a/1.png" and "a/1.jpg", "a/1" and "b/a/1.jpg". The longest such path counts. A pure
// function. Errors: std::runtime_error with the names, where that does not say which.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/source/annotated/annotation_set.h"

namespace stoker {

// Returns the picture's number for each sample; -1: none. A picture has one sample at most.
std::vector<int64_t> match_pictures(const AnnotationSet& set,
                                    const std::vector<std::string>& samples);

}  // namespace stoker
