// SPDX-License-Identifier: Apache-2.0
#include "worker/planted_fault.hpp"

#include "schemas/protocol.hpp"
#include "worker/load/clock.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>

#include <csignal>
#include <cstdio>
#include <optional>
#include <unistd.h>
#include <utility>

namespace plateau {

namespace {

at::Tensor allocate(std::int64_t bytes, c10::Device where) {
  return at::empty({bytes}, at::TensorOptions().dtype(at::kByte).device(where));
}

// The scope is how attribution names it.
class leak final : public planted_fault {
public:
  leak(std::int64_t bytes, std::int64_t every, c10::Device where) : bytes_(bytes), every_(every), where_(where) {}
  void strike(std::int64_t served, std::int64_t) override {
    if ((served + 1) % every_ != 0) return;
    RECORD_FUNCTION("plateau::planted_leak", c10::ArrayRef<c10::IValue>());
    kept_.push_back(allocate(bytes_, where_));
  }

private:
  std::int64_t bytes_, every_;
  c10::Device where_;
  std::vector<at::Tensor> kept_;
};

// Busy, as a slower device would keep it: a thread that slept would leave its core to the rank's other threads, which
// then are faster, and nothing would be seen from outside.
class slowness final : public planted_fault {
public:
  explicit slowness(std::optional<double> ms) : ms_(ms) {}
  void strike(std::int64_t, std::int64_t begin_ns) override {
    auto const now = now_ns();
    auto const longer = ms_ ? static_cast<std::int64_t>(*ms_ * 1e6) : now - begin_ns;
    while (now_ns() < now + longer) {
    }
  }

private:
  std::optional<double> ms_;
};

// What happens once, and is said in the worker's log, since nothing of it may reach the result.
class blow final : public planted_fault {
public:
  blow(std::string text, void (*happen)(device const&), device const& dev)
      : text_(std::move(text)), happen_(happen), dev_(dev) {}
  void strike(std::int64_t served, std::int64_t) override {
    if (served != 0) return;
    std::fprintf(stderr, "plateau-worker: planted fault %s\n", text_.c_str());
    std::fflush(stderr);
    happen_(dev_);
  }

private:
  std::string text_;
  void (*happen_)(device const&);
  device const& dev_;
};

void hang(device const&) {
  while (true) pause();
}

void crash(device const&) {
  std::signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
}

// The allocator says so itself; what it gave back while trying is the next case's to take again.
void run_out_of_memory(device const& dev) {
  auto const all = dev.info().memory_bytes;
  allocate(2 * all, dev.torch_device());
}

// PyTorch checks an index on the CPU before it reads; on CUDA the kernel that reads does. The copy waits for it.
void read_out_of_range(device const& dev) {
  auto const options = at::TensorOptions().device(dev.torch_device());
  constexpr std::int64_t size = 4;
  at::index_select(at::zeros({size}, options), 0, at::full({1}, size, options.dtype(at::kLong))).cpu();
}

// A length over the largest frame, so that the rank knows at once.
void send_garbage(device const&) { protocol::send_frame(protocol::socket_fd, std::vector<std::uint8_t>(64, 0xff)); }

} // namespace

std::unique_ptr<planted_fault> make_fault(injection const& planted, std::size_t thread, device const& dev) {
  auto const once = [&](void (*happen)(device const&)) -> std::unique_ptr<planted_fault> {
    if (thread != 0) return nullptr;
    return std::make_unique<blow>(planted.text, happen, dev);
  };
  switch (planted.kind) {
  case fault::leak: return std::make_unique<leak>(planted.bytes, planted.every, dev.torch_device());
  case fault::slow: return std::make_unique<slowness>(planted.ms);
  case fault::hang: return once(hang);
  case fault::crash: return once(crash);
  case fault::oom: return once(run_out_of_memory);
  case fault::device_error: return once(read_out_of_range);
  case fault::garbage: return once(send_garbage);
  }
  return nullptr;
}

faulty_request::faulty_request(request& inner, std::unique_ptr<planted_fault> fault, std::int64_t after)
    : inner_(inner), fault_(std::move(fault)), after_(after) {}

void faulty_request::submit() {
  begin_ns_ = now_ns();
  inner_.submit();
}

void faulty_request::wait() {
  inner_.wait();
  if (!armed_) return;
  auto const before = served_++;
  if (before >= after_) fault_->strike(before - after_, begin_ns_);
}

} // namespace plateau
