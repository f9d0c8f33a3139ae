#include "pipeline/feed_sequence.h"

namespace stoker {

NextSample FeedSequence::operator()(SampleId& id) {
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
