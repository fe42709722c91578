// SPDX-License-Identifier: Apache-2.0
#include "schemas/host.hpp"
#include "worker/device/device.hpp"
#include "worker/device/process_memory.hpp"
#include "worker/memory/cpu_allocator.hpp"

#include <fstream>
#include <set>
#include <torch/headeronly/version.h>
#include <unistd.h>

namespace plateau {

namespace {

// Numbers of streams that exist. The smallest free one is given out, so that a later case finds the cached blocks of
// an earlier one, as CUDA's pool of streams would have it.
class stream_numbers {
public:
  std::int64_t take() {
    std::int64_t n = 0;
    while (!taken_.insert(n).second) ++n;
    return n;
  }
  void give_back(std::int64_t n) { taken_.erase(n); }

private:
  std::set<std::int64_t> taken_;
};

// A CPU operator is done when it returns: only the allocator knows of streams.
class cpu_stream final : public stream {
public:
  explicit cpu_stream(stream_numbers& numbers) : numbers_(numbers), number_(numbers.take()) {}
  ~cpu_stream() override { numbers_.give_back(number_); }
  cpu_stream(cpu_stream const&) = delete;
  cpu_stream& operator=(cpu_stream const&) = delete;

  void enter() override { cpu_allocator::enter_stream(number_); }
  void wait() override {}

private:
  stream_numbers& numbers_;
  std::int64_t number_;
};

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    auto const colon = line.find(": ");
    if (colon != line.npos) return line.substr(colon + 2);
  }
  return "CPU of unknown model"; // as on Arm, where the kernel does not tell
}

class cpu_device final : public device {
public:
  device_info info() const override {
    device_info d;
    d.kind = "cpu";
    d.name = cpu_name();
    d.memory_bytes = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
    auto const cpus = allowed_cpus();
    d.cpu_set = cpus.text;
    d.cpus = cpus.count;
    d.versions = {{"torch", TORCH_VERSION}};
    return d;
  }
  c10::Device torch_device() const override { return c10::kCPU; }
  std::unique_ptr<stream> make_stream() override { return std::make_unique<cpu_stream>(numbers_); }
  void wait_idle() override {}

  counters read_counters() const override { return allocator_.read(); }
  void reset_peak() override { allocator_.reset_peak(); }
  std::optional<std::string> counters_unavailable() const override { return std::nullopt; }
  std::int64_t outside_bytes() const override {
    return read_process_memory().anonymous_bytes - allocator_.read().reserved_bytes;
  }

private:
  cpu_allocator& allocator_ = install_cpu_allocator();
  stream_numbers numbers_;
};

} // namespace

std::unique_ptr<device> open_cpu() { return std::make_unique<cpu_device>(); }

} // namespace plateau
