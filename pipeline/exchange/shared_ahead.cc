#include "pipeline/exchange/shared_ahead.h"

namespace stoker {

SharedAhead::SharedAhead(const SharedRows& rows, const Options& options)
    : rows_(rows),
      options_(options),
      blocks_(options.ring.size()),
      cursor_{.step = options.first_step},
      position_(options.first_step) {}

SharedAhead::Block& SharedAhead::block(const BlockPosition& position) {
  Block& found = blocks_[options_.ring.index(position)];
  if (found.step != position.step) found = {.step = position.step};
  return found;
}

void SharedAhead::advance() {
  if (++cursor_.number < options_.ring.blocks) return;
  cursor_.number = 0;
  if (++cursor_.device < options_.ring.devices) return;
  cursor_.device = 0;
  ++cursor_.step;
}

NextSample SharedAhead::next(BlockPosition& position) {
  const MutexLock lock(mutex_);
  if (!late_.empty()) {
    position = late_.front();
    late_.pop_front();
    return NextSample::found;
  }
  if (cursor_.step < position_) cursor_ = {.step = position_};
  for (;; advance()) {
    if (cursor_.step >= options_.end_step) return NextSample::end;
    if (cursor_.step >= position_ + options_.ring.steps) return NextSample::later;
    Block& at = block(cursor_);
    if (at.state == State::open && rows_.is_for_this(cursor_)) {
      at.state = State::announced;
      position = cursor_;
      advance();
      return NextSample::found;
    }
  }
}

bool SharedAhead::is_announced(const BlockPosition& position) const {
  const MutexLock lock(mutex_);
  const Block& at = blocks_[options_.ring.index(position)];
  return at.step == position.step && at.state == State::announced;
}

void SharedAhead::will_read(const BlockPosition& position) {
  const MutexLock lock(mutex_);
  Block& at = block(position);
  if (at.state == State::announced) return;
  at.state = State::announced;
  late_.push_back(position);
}

bool SharedAhead::was_taken(const BlockPosition& position) {
  const MutexLock lock(mutex_);
  Block& at = block(position);
  const bool was_announced = at.state == State::announced;
  at.state = State::taken;
  return was_announced;
}

void SharedAhead::set_position(Step step) {
  const MutexLock lock(mutex_);
  if (step > position_) position_ = step;
}

}  // namespace stoker
