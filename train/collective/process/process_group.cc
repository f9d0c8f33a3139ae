#include "train/collective/process/process_group.h"

#include <algorithm>

namespace stoker {
namespace {

constexpr size_t kTreePieceBytes = size_t{64} << 20;

std::span<const std::byte> count_bytes(const int64_t& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::span<std::byte> count_bytes(int64_t& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

// A binomial tree: in round k each process that has the bytes sends them to the one 2^k further.
void MessageGroup::broadcast(std::span<std::byte> bytes, int root) {
  const int me = (rank() - root + size()) % size();
  for (size_t at = 0; at < bytes.size(); at += kTreePieceBytes) {
    const auto piece = bytes.subspan(at, std::min(kTreePieceBytes, bytes.size() - at));
    std::vector<Ticket> sends;
    for (int distance = 1; distance < size(); distance *= 2) {
      if (me < distance && me + distance < size()) {
        sends.push_back(send((me + distance + root) % size(), piece));
      } else if (me >= distance && me < 2 * distance) {
        wait(receive((me - distance + root) % size(), piece));
      }
    }
    for (const auto ticket : sends) wait(ticket);
  }
}

// Gathers at process 0, which broadcasts to all.
ProcessGroup::Ticket MessageGroup::start_all_gather(std::span<const std::byte> own,
                                                    std::span<std::byte> all) {
  std::copy(own.begin(), own.end(), all.begin() + rank() * static_cast<int64_t>(own.size()));
  if (rank() == 0) {
    std::vector<Ticket> receives;
    for (int from = 1; from < size(); ++from) {
      receives.push_back(receive(from, all.subspan(from * own.size(), own.size())));
    }
    for (const auto ticket : receives) wait(ticket);
  } else {
    wait(send(0, own));
  }
  broadcast(all, 0);
  return 0;
}

void broadcast(ProcessGroup& group, std::span<std::byte> bytes, int root) {
  if (!bytes.empty()) group.broadcast(bytes, root);
}

std::vector<int64_t> all_gather(ProcessGroup& group, int64_t value) {
  std::vector<int64_t> values(static_cast<size_t>(group.size()));
  group.end_all_gather(
      group.start_all_gather(count_bytes(value), std::as_writable_bytes(std::span(values))));
  return values;
}

int64_t all_reduce_max(ProcessGroup& group, int64_t value) {
  const std::vector<int64_t> values = all_gather(group, value);
  return *std::max_element(values.begin(), values.end());
}

namespace {

std::vector<std::vector<std::byte>> gather(MessageGroup& group, std::span<const std::byte> bytes) {
  const int64_t count = static_cast<int64_t>(bytes.size());
  if (group.rank() != 0) {
    const auto size = group.send(0, count_bytes(count));
    if (count > 0) group.wait(group.send(0, bytes));
    group.wait(size);
    return {};
  }
  std::vector<std::vector<std::byte>> all(static_cast<size_t>(group.size()));
  all[0].assign(bytes.begin(), bytes.end());
  for (int from = 1; from < group.size(); ++from) {
    int64_t size = 0;
    group.wait(group.receive(from, count_bytes(size)));
    all[from].resize(static_cast<size_t>(size));
    if (size > 0) group.wait(group.receive(from, all[from]));
  }
  return all;
}

}  // namespace

std::vector<std::vector<std::byte>> gather(ProcessGroup& group, std::span<const std::byte> bytes) {
  if (MessageGroup* messages = group.messages()) return gather(*messages, bytes);
  const std::vector<int64_t> sizes = all_gather(group, static_cast<int64_t>(bytes.size()));
  const auto most = static_cast<size_t>(*std::max_element(sizes.begin(), sizes.end()));
  std::vector<std::byte> own(bytes.begin(), bytes.end());
  own.resize(most);
  std::vector<std::byte> padded(most * sizes.size());
  if (most > 0) group.end_all_gather(group.start_all_gather(own, padded));
  std::vector<std::vector<std::byte>> all;
  for (size_t from = 0; from < sizes.size() && group.rank() == 0; ++from) {
    const auto begin = padded.begin() + static_cast<int64_t>(from * most);
    all.emplace_back(begin, begin + sizes[from]);
  }
  return all;
}

}  // namespace stoker
