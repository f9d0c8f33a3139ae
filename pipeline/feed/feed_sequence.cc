#include "pipeline/feed/feed_sequence.h"

#include <algorithm>

namespace stoker {
namespace {

// Samples that a cache has are skipped, at most so many batches beyond those that are read now:
// more is not needed, and all may be there, of a feed without an end.
constexpr Step kMaxSkipped = 64;

}  // namespace

NextSample FeedSequence::operator()(SampleId& id) {
  const DecodedRows& decoded = filler_.reader().decoded_rows();
  if (decoded.form() == nullptr) return advance(id);
  // Nobody asked while rows were made of what is kept: nothing is fetched that nobody will read.
  if (shared_ == nullptr && batch_ + kMaxSkipped < decoded.reached()) {
    batch_ = decoded.reached();
    device_ = 0;
    range_ = {};
  }
  const Step last = std::max(first_, decoded.reached()) + kMaxSkipped;
  NextSample next = NextSample::found;
  do {
    const Step batch = shared_ != nullptr || range_.rows > 0 ? range_.step : batch_;
    if (batch > last) return NextSample::later;
    next = advance(id);
  } while (next == NextSample::found && !decoded.announces(id));
  return next;
}

NextSample FeedSequence::advance(SampleId& id) {
  if (partner_ < partners_.size() && partners_[partner_] >= 0) {
    id = partners_[partner_++];
    return NextSample::found;
  }
  if (range_.rows == 0) {
    const NextSample next = next_range();
    if (next != NextSample::found) return next;
  }
  const BatchPosition position = filler_.position(range_.step, range_.device);
  const int row = range_.first_row++;
  --range_.rows;
  const EpochKey epoch = filler_.sampler().key(position.epoch);
  id = filler_.sampler().row(epoch, position.step_in_epoch, position.replica, row).id;
  if (filler_.augment().combines()) {
    partners_ = filler_.partners(epoch, position, row);
    partner_ = 0;
  }
  return NextSample::found;
}

NextSample FeedSequence::next_range() {
  if (shared_ != nullptr) return shared_->next_ahead(range_);
  if (batch_ >= end_) return NextSample::end;
  range_ = {batch_, device_, 0, rows_};
  if (++device_ == devices_) {
    device_ = 0;
    ++batch_;
  }
  return NextSample::found;
}

}  // namespace stoker
