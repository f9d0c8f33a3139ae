#include "pipeline/feed_sequence.h"

#include <algorithm>

namespace stoker {

namespace {

// What a cache has is passed over, at most so many batches beyond those that are read now: more is
// not needed, and all may be there, of a feed without an end.
constexpr Step kMostPassedOver = 64;

}  // namespace

NextSample FeedSequence::operator()(SampleId& id) {
  const DecodedRows& decoded = filler_.decoded_rows();
  if (decoded.form() == nullptr) return advance(id);
  // Nobody asked while rows were made of what is kept: nothing is fetched that nobody will read.
  if (batch_ + kMostPassedOver < decoded.reached()) {
    batch_ = decoded.reached();
    device_ = row_ = 0;
  }
  const Step last = std::max(first_, decoded.reached()) + kMostPassedOver;
  NextSample next = NextSample::found;
  do {
    if (batch_ > last) return NextSample::later;
    next = advance(id);
  } while (next == NextSample::found && !decoded.announces(id));
  return next;
}

NextSample FeedSequence::advance(SampleId& id) {
  if (batch_ >= end_) return NextSample::end;
  const BatchPlace place = filler_.place(batch_, device_);
  id = filler_.sampler().row(place.epoch, place.step_in_epoch, place.replica, row_).id;
  if (++row_ < rows_) return NextSample::found;
  row_ = 0;
  if (++device_ < devices_) return NextSample::found;
  device_ = 0;
  ++batch_;
  return NextSample::found;
}

}  // namespace stoker
