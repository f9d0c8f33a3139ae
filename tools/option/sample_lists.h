// Texts about samples: which of them take part, how often each comes, and the shares of
// several data sets. Functions of their arguments and of the files that these name. Threads: any.
// Errors: std::invalid_argument with the text as it was written, or with file and line.
#pragma once

#include <string>
#include <vector>

#include "pipeline/source.h"

namespace stoker {

// Returns the samples that `spec` names, at least one and none twice. It has one of three forms:
//   part=A:B           the samples from share A to share B of a random permutation that depends
//                      only on the size of the source, so that parts which do not overlap have no
//                      sample in common. In ascending order. part=0:X and part=X:1 are the two
//                      lists of random_split(size, {X, 1 - X}, 0).
//   classes=NAME,...   the samples of these classes, by name or by number. In ascending order.
//   FILE               those of a file with one sample per line: numbers if all lines are numbers,
//                      else names as Source::name() has them. In the order of the file.
std::vector<SampleId> subset_ids(const Source& source, const std::string& spec);

// Reads the weights of a source's samples from a file: a number per line for each sample, or lines
// of CLASS WEIGHT, one for each class, which give every sample the weight of its class.
std::vector<double> weights_from_file(const Source& source, const std::string& path);

struct BlendPart {
  std::string path;
  double weight = 0;  // finite and above 0
};
// Reads PATH=WEIGHT. The last = counts, because a path may have one.
BlendPart parse_blend_part(const std::string& text);

}  // namespace stoker
