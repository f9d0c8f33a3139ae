#include "pipeline/exchange/row_message.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "pipeline/files/digest.h"

namespace stoker {
namespace {

constexpr uint64_t kMessageForm = 0x31736f7772746b73;  // "sktrows1"

struct MessageHead {
  uint64_t form = kMessageForm;
  uint64_t fingerprint = 0;
  RowRange range;
};
constexpr size_t kMessageHeadBytes = BatchLayout::kAlignment;
static_assert(sizeof(MessageHead) <= kMessageHeadBytes);

std::string text_of_rows(const RowRange& range) {
  return "rows " + std::to_string(range.first_row) + " to " +
         std::to_string(range.first_row + range.rows - 1) + " of step " +
         std::to_string(range.step) + ", device " + std::to_string(range.device);
}

}  // namespace

BatchLayout message_layout(const BatchShape& batch, int rows) {
  BatchShape shape = batch;
  shape.rows = rows;
  return BatchLayout(shape);
}

size_t message_bytes(const BatchShape& batch, int rows) {
  return kMessageHeadBytes + message_layout(batch, rows).slab_bytes();
}

Slab begin_message(std::span<std::byte> message, const BatchShape& batch, const RowRange& range,
                   uint64_t fingerprint) {
  const MessageHead head{.fingerprint = fingerprint, .range = range};
  std::memset(message.data(), 0, kMessageHeadBytes);
  std::memcpy(message.data(), &head, sizeof(head));
  return slab_at(message.data() + kMessageHeadBytes, message_layout(batch, range.rows));
}

const Slab read_message(std::span<const std::byte> message, const BatchShape& batch,
                        const RowRange& range, uint64_t fingerprint) {
  MessageHead head;
  if (message.size() >= sizeof(head)) std::memcpy(&head, message.data(), sizeof(head));
  if (message.size() < sizeof(head) || head.form != kMessageForm) {
    throw std::invalid_argument("these " + std::to_string(message.size()) +
                                " bytes are no rows of this version of stoker");
  }
  if (head.fingerprint != fingerprint) {
    throw std::invalid_argument(
        "the rows were made from other data, with other arguments or by another version of stoker: "
        "their fingerprint is " +
        hex64(head.fingerprint) + ", this feed has " + hex64(fingerprint));
  }
  if (head.range != range) {
    throw std::invalid_argument(text_of_rows(head.range) + " came for " + text_of_rows(range));
  }
  const size_t expected = message_bytes(batch, range.rows);
  if (message.size() != expected) {
    throw std::invalid_argument(text_of_rows(range) + " came in " + std::to_string(message.size()) +
                                " bytes, must be " + std::to_string(expected));
  }
  // Nobody writes through this slab: it is const for the caller.
  return slab_at(const_cast<std::byte*>(message.data()) + kMessageHeadBytes,
                 message_layout(batch, range.rows));
}

// CBOR, because messages quote names and bytes of files, which may be no UTF-8.
std::vector<uint8_t> pack_bad_samples(const std::vector<BadSample>& bad) {
  if (bad.empty()) return {};
  auto all = nlohmann::json::array();
  for (const BadSample& each : bad) {
    const Finding& finding = each.finding;
    all.push_back({each.step, each.epoch, each.device, each.row, finding.id, finding.reason,
                   finding.byte_offset, finding.message});
  }
  return nlohmann::json::to_cbor(all);
}

std::vector<BadSample> unpack_bad_samples(std::span<const uint8_t> packed) {
  std::vector<BadSample> bad;
  if (packed.empty()) return bad;
  try {
    for (const nlohmann::json& each : nlohmann::json::from_cbor(packed.begin(), packed.end())) {
      bad.push_back({.step = each.at(0).get<Step>(),
                     .epoch = each.at(1).get<int64_t>(),
                     .device = each.at(2).get<int>(),
                     .row = each.at(3).get<int>(),
                     .finding = {each.at(4).get<SampleId>(), each.at(5).get<std::string>(),
                                 each.at(6).get<int64_t>(), each.at(7).get<std::string>()}});
    }
  } catch (const nlohmann::json::exception& error) {
    throw std::invalid_argument(std::string("the list of bad samples cannot be read: ") +
                                error.what());
  }
  return bad;
}

}  // namespace stoker
