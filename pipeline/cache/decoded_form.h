// Finds what a cache can keep of the decoded pictures of a data set under an augmentation, so that
// no row's bytes change. It looks at some samples, and at what is drawn for them in some epochs:
//
//   what the decoder makes for a row is the same in every epoch, and has one size (evaluation;
//     CIFAR's random crop with padding, which the decoder does not do): that is kept;
//   the images are small, of one size, and pixels are exact: whole images are kept, and rows are
//     made of them as of files, because a crop and a resize of an image are the same bytes whether
//     the decoder does them or Pillow's resize behind it;
//   else nothing comes again, and there is nothing to keep.
//
// A kept picture says what it shows, and a row that shows something else is made of its file: so
// the look at some samples decides what is worth keeping, and never what a row is.
#pragma once

#include <cstdint>
#include <string>

#include "pipeline/augment.h"
#include "pipeline/augment/decoded_picture.h"
#include "pipeline/random/permutation.h"
#include "pipeline/source.h"

namespace stoker {

// Larger images than this are not kept whole: the files take less memory by far.
inline constexpr int64_t kMaxWholePixels = int64_t{128} * 128;

struct FoundForm {
  DecodedForm form;
  // Text that says what the samples that were looked at show, and who decodes them: tells recipes,
  // and libraries for rare formats, apart.
  std::string shown;
};

// `order`: the samples in the order in which they are kept. Throws InvalidField with the reason, a
// sample and numbers if nothing can be kept, and std::runtime_error if no sample can be read.
FoundForm find_decoded_form(const Source& source, const AugmentSpec& augment,
                            const DecodeOptions& decode, const Permutation& order);

}  // namespace stoker
