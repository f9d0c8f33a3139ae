// A process group over NCCL. A message lies in pinned memory; it goes to this process's GPU, from
// there to the other GPUs, and on each of them back to pinned memory. One stream and one
// communicator do all of this, and sum gradients too, because two communicators that are busy on
// one GPU may wait for each other for ever.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "train/collective/cuda/nccl.h"
#include "train/collective/process/late_notice.h"

namespace stoker {
namespace {

constexpr size_t kNcclPieceBytes = size_t{32} << 20;  // of a broadcast
constexpr auto kNcclPause = std::chrono::microseconds(50);
constexpr int kPollsPerLook = 200;  // checks the other ranks' state about every 10 ms

class Group final : public NcclGroup {
 public:
  Group(std::unique_ptr<Device> device, int rank, int size)
      : device_(std::move(device)), rank_(rank), size_(size) {
    const Nccl nccl = open_nccl();
    link_ = std::make_shared<NcclLink>(nccl, *device_);
    link_->join(make_nccl_id(), rank, size);
    link_->start();
  }
  ~Group() override {
    if (!finished_) abort("it left before the end");
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int cuda_ordinal() const override { return device_->cuda_ordinal(); }

  void broadcast(std::span<std::byte> bytes, int root) override {
    for (size_t at = 0; at < bytes.size(); at += kNcclPieceBytes) {
      const auto piece = bytes.subspan(at, std::min(kNcclPieceBytes, bytes.size() - at));
      Transfer& transfer = idle(piece.size());
      std::byte* on_device = transfer.device->data();
      if (rank_ == root) upload(transfer, piece);
      const Nccl& nccl = link_->nccl();
      CudaContext::Current current(link_->context());
      nccl.check(nccl.broadcast(on_device, on_device, piece.size(), ncclInt8, root,
                                link_->communicator(), link_->handle()),
                 "ncclBroadcast");
      download(transfer, on_device, piece);
      complete(transfer);
    }
  }

  Ticket start_all_gather(std::span<const std::byte> own, std::span<std::byte> all) override {
    Transfer& transfer = idle(own.size() + all.size());
    std::byte* on_device = transfer.device->data();
    upload(transfer, own);
    const Nccl& nccl = link_->nccl();
    CudaContext::Current current(link_->context());
    nccl.check(nccl.all_gather(on_device, on_device + own.size(), own.size(), ncclInt8,
                               link_->communicator(), link_->handle()),
               "ncclAllGather");
    download(transfer, on_device + own.size(), all);
    under_way_[next_] = &transfer;
    return next_++;
  }

  void end_all_gather(Ticket ticket) override {
    Transfer* transfer = under_way_.at(ticket);
    under_way_.erase(ticket);
    complete(*transfer);
  }

  void abort(const std::string&) noexcept override { link_->abort(); }
  void finish() override {
    const std::byte here{};
    std::vector<std::byte> all(static_cast<size_t>(size_));
    end_all_gather(start_all_gather({&here, 1}, all));  // waits until all ranks are done
    finished_ = true;
  }

  std::unique_ptr<Collective> make_collective(const DeviceReplica& replica, int64_t bf16_floats,
                                              std::shared_ptr<Ranks> ranks) override {
    return make_linked_collective(replica, link_, bf16_floats, std::move(ranks));
  }

 private:
  struct Transfer {
    std::unique_ptr<Memory> pinned, device;
    std::unique_ptr<Event> done;
    std::span<std::byte> target;
    bool busy = false;
  };

  // Returns the smallest idle transfer that is large enough, or a new one.
  Transfer& idle(size_t bytes) {
    Transfer* found = nullptr;
    for (const auto& each : transfers_) {
      const bool fits = !each->busy && each->pinned->size_bytes() >= bytes;
      if (fits && (!found || each->pinned->size_bytes() < found->pinned->size_bytes())) {
        found = each.get();
      }
    }
    if (!found) {
      found = transfers_.emplace_back(std::make_unique<Transfer>()).get();
      found->pinned = device_->allocate(bytes, MemoryKind::pinned);
      found->device = device_->allocate(bytes, MemoryKind::device);
      found->done = device_->make_event();
    }
    found->busy = true;
    return *found;
  }

  void upload(Transfer& transfer, std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), transfer.pinned->data());
    link_->stream().copy(transfer.device->data(), transfer.pinned->data(), bytes.size(),
                         CopyKind::host_to_device);
  }

  void download(Transfer& transfer, const std::byte* from, std::span<std::byte> to) {
    link_->stream().copy(transfer.pinned->data(), from, to.size(), CopyKind::device_to_host);
    link_->stream().record(*transfer.done);
    transfer.target = to;
  }

  // Waits for the transfer, which is ordered after this GPU's own work. The notice cannot name the
  // late rank, because NCCL does not report it.
  void complete(Transfer& transfer) {
    LateNotice notice;
    for (int polls = 1; !transfer.done->query(); ++polls) {
      if (polls % kPollsPerLook == 0) {
        link_->check_others();
        if (notice.due()) {
          std::fprintf(stderr,
                       "stoker: rank %d of %d has waited for all ranks for %lld s (NCCL does not "
                       "say which is late)\n",
                       rank_, size_, static_cast<long long>(notice.waited().count()));
        }
      }
      std::this_thread::sleep_for(kNcclPause);
    }
    link_->check_others();  // an aborted transfer also ends
    std::copy_n(transfer.pinned->data(), transfer.target.size(), transfer.target.begin());
    transfer.busy = false;
  }

  const std::unique_ptr<Device> device_;
  const int rank_, size_;
  std::vector<std::unique_ptr<Transfer>> transfers_;
  std::map<Ticket, Transfer*> under_way_;
  Ticket next_ = 0;
  bool finished_ = false;
  std::shared_ptr<NcclLink> link_;  // last: its stream uses the transfers
};

}  // namespace

std::unique_ptr<NcclGroup> make_nccl_group(std::unique_ptr<Device> device, int rank, int size) {
  return std::make_unique<Group>(std::move(device), rank, size);
}

}  // namespace stoker
