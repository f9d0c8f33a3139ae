#include "train/process_group.h"

#include <algorithm>

namespace stoker {
namespace {

constexpr size_t kPieceBytes = size_t{64} << 20;

std::span<const std::byte> bytes_of(const int64_t& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::span<std::byte> bytes_of(int64_t& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

// A binomial tree: in round k those that have the bytes pass them on to those 2^k further.
void broadcast(ProcessGroup& group, std::span<std::byte> bytes, int root) {
  const int size = group.size();
  const int me = (group.rank() - root + size) % size;
  for (size_t at = 0; at < bytes.size(); at += kPieceBytes) {
    const auto piece = bytes.subspan(at, std::min(kPieceBytes, bytes.size() - at));
    std::vector<ProcessGroup::Ticket> sends;
    for (int distance = 1; distance < size; distance *= 2) {
      if (me < distance && me + distance < size) {
        sends.push_back(group.send((me + distance + root) % size, piece));
      } else if (me >= distance && me < 2 * distance) {
        group.wait(group.receive((me - distance + root) % size, piece));
      }
    }
    for (const auto ticket : sends) group.wait(ticket);
  }
}

std::vector<int64_t> all_gather(ProcessGroup& group, int64_t value) {
  std::vector<int64_t> values(static_cast<size_t>(group.size()));
  values[group.rank()] = value;
  if (group.rank() == 0) {
    std::vector<ProcessGroup::Ticket> receives;
    for (int from = 1; from < group.size(); ++from) {
      receives.push_back(group.receive(from, bytes_of(values[from])));
    }
    for (const auto ticket : receives) group.wait(ticket);
  } else {
    group.wait(group.send(0, bytes_of(values[group.rank()])));
  }
  broadcast(group, std::as_writable_bytes(std::span(values)));
  return values;
}

int64_t all_max(ProcessGroup& group, int64_t value) {
  const std::vector<int64_t> values = all_gather(group, value);
  return *std::max_element(values.begin(), values.end());
}

std::vector<std::vector<std::byte>> gather(ProcessGroup& group, std::span<const std::byte> bytes) {
  const int64_t count = static_cast<int64_t>(bytes.size());
  if (group.rank() != 0) {
    const auto size = group.send(0, bytes_of(count));
    if (count > 0) group.wait(group.send(0, bytes));
    group.wait(size);
    return {};
  }
  std::vector<std::vector<std::byte>> all(static_cast<size_t>(group.size()));
  all[0].assign(bytes.begin(), bytes.end());
  for (int from = 1; from < group.size(); ++from) {
    int64_t size = 0;
    group.wait(group.receive(from, bytes_of(size)));
    all[from].resize(static_cast<size_t>(size));
    if (size > 0) group.wait(group.receive(from, all[from]));
  }
  return all;
}

}  // namespace stoker
