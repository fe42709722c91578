// SPDX-License-Identifier: Apache-2.0
#include "schemas/error.hpp"
#include "schemas/host.hpp"
#include "worker/device/choose_gpu.hpp"
#include "worker/device/device.hpp"
#include "worker/device/device_stats.hpp"
#include "worker/device/nvml.hpp"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <torch/headeronly/version.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <set>
#include <utility>

namespace plateau {

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

class cuda_graph final : public captured_work {
public:
  explicit cuda_graph(std::function<void()> const& work) {
    // Thread-local: another thread's cudaMalloc must not end the capture.
    graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    work();
    graph_.capture_end();
  }
  void submit() override { graph_.replay(); }

private:
  at::cuda::CUDAGraph graph_;
};

// Streams that exist, each held by one stream thread at a time.
class stream_pool {
public:
  explicit stream_pool(c10::DeviceIndex device) : device_(device) {}

  c10::cuda::CUDAStream take() {
    if (auto const s = c10::cuda::getDefaultCUDAStream(device_); hold(s)) return s;
    for (int i = 0; i < torch_streams; ++i)
      if (auto const s = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device_); hold(s)) return s;
    for (auto* const own : own_)
      if (auto const s = c10::cuda::getStreamFromExternal(own, device_); hold(s)) return s;
    cudaStream_t own = nullptr;
    C10_CUDA_CHECK(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
    own_.push_back(own);
    held_.insert(own);
    return c10::cuda::getStreamFromExternal(own, device_);
  }
  void give_back(cudaStream_t s) { held_.erase(s); }

private:
  static constexpr int torch_streams = 32; // of one priority; then getStreamFromPool() begins again with the first
  bool hold(c10::cuda::CUDAStream s) { return held_.insert(s.stream()).second; }

  c10::DeviceIndex device_;
  std::vector<cudaStream_t> own_; // never destroyed: the allocator's cache may know them
  std::set<cudaStream_t> held_;
};

class cuda_stream final : public stream {
public:
  explicit cuda_stream(stream_pool& pool) : pool_(pool), stream_(pool.take()), raw_(stream_.stream()) {}
  ~cuda_stream() override { pool_.give_back(raw_); }
  cuda_stream(cuda_stream const&) = delete;
  cuda_stream& operator=(cuda_stream const&) = delete;

  void enter() override {
    c10::cuda::set_device(stream_.device_index()); // a new thread begins on device 0
    c10::cuda::setCurrentCUDAStream(stream_);
  }
  void wait() override { C10_CUDA_CHECK(cudaStreamSynchronize(raw_)); }
  std::unique_ptr<captured_work> capture(std::function<void()> const& work) override {
    C10_CUDA_CHECK(cudaDeviceSynchronize());
    allocator::emptyCache();
    return std::make_unique<cuda_graph>(work);
  }

private:
  stream_pool& pool_;
  c10::cuda::CUDAStream stream_;
  cudaStream_t raw_;
};

std::string text_of(cudaUUID_t const& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char byte[3];
    std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    text += byte;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

// 13020 is CUDA 13.2.
std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

using asked_version = cudaError_t (*)(int*);

std::string version_from(asked_version ask) {
  int number = 0;
  C10_CUDA_CHECK(ask(&number));
  return cuda_version(number);
}

struct wait_policy {
  std::string_view name;
  unsigned flag;
};
constexpr std::array wait_policies{wait_policy{"spin", cudaDeviceScheduleSpin},
                                   wait_policy{"yield", cudaDeviceScheduleYield},
                                   wait_policy{"blocking", cudaDeviceScheduleBlockingSync}};

void set_wait_policy(std::string_view name) {
  for (auto const& policy : wait_policies)
    if (policy.name == name) C10_CUDA_CHECK(cudaSetDeviceFlags(policy.flag));
}

std::string effective_wait_policy() {
  unsigned flags = 0;
  C10_CUDA_CHECK(cudaGetDeviceFlags(&flags));
  for (auto const& policy : wait_policies)
    if (policy.flag == (flags & cudaDeviceScheduleMask)) return std::string(policy.name);
  return "automatic";
}

std::string yes_or_no(bool yes) { return yes ? "true" : "false"; }

std::map<std::string, std::string> effective_settings() {
  std::map<std::string, std::string> s{
      {"allocator_backend", allocator::get()->name()},
      {"cublas_workspace_bytes", std::to_string(at::cuda::getChosenWorkspaceSize())},
      {"cublaslt_workspace_bytes", std::to_string(at::cuda::getCUDABlasLtWorkspaceSize())},
      {"sync", effective_wait_policy()},
      {"allow_tf32", yes_or_no(at::globalContext().allowTF32CuBLAS())},
  };
  if (s["allocator_backend"] != "native") return s;
  auto const config = allocator::snapshot({0, 0}, /*include_traces=*/false).config_metadata;
  s["allocator_settings"] = config.last_allocator_settings;
  s["expandable_segments"] = yes_or_no(config.expandable_segments);
  s["garbage_collection_threshold"] = std::to_string(config.garbage_collection_threshold);
  if (config.max_split_size != SIZE_MAX) s["max_split_size_bytes"] = std::to_string(config.max_split_size);
  return s;
}

// The pretend GPU has a symbol that no CUDA has.
bool is_pretended() { return dlsym(RTLD_DEFAULT, "plateau_pretend_gpu") != nullptr; }

cudaDeviceProp properties_of(int index) {
  cudaDeviceProp p;
  C10_CUDA_CHECK(cudaGetDeviceProperties(&p, index));
  return p;
}

gpu_choice what_is_visible(device_request const& request) {
  gpu_choice choice{.visible = {},
                    .local_rank = request.local_rank,
                    .local_size = request.local_size,
                    .host = host_name(),
                    .visible_list = {},
                    .cuda_says = {}};
  int count = 0;
  if (auto const error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    count = 0;
    choice.cuda_says = cudaGetErrorString(error);
    static_cast<void>(cudaGetLastError());
  }
  for (int i = 0; i < count; ++i) choice.visible.push_back(text_of(properties_of(i).uuid));
  if (auto const* list = std::getenv("CUDA_VISIBLE_DEVICES")) choice.visible_list = list;
  return choice;
}

class cuda_device final : public device {
public:
  cuda_device(int index, int visible, device_request const& request);

  device_info info() const override { return info_; }
  c10::Device torch_device() const override { return {c10::kCUDA, index_}; }
  std::unique_ptr<stream> make_stream() override { return std::make_unique<cuda_stream>(streams_); }
  void wait_idle() override { C10_CUDA_CHECK(cudaDeviceSynchronize()); }

  counters read_counters() const override;
  void reset_peak() override { allocator::resetPeakStats(index_); }
  std::optional<std::string> counters_unavailable() const override;
  std::int64_t outside_bytes() const override;
  // a pretended one has no clocks, unless it pretends those as well
  bool slows_when_idle() const override { return !*info_.pretended || std::getenv("PRETEND_CLOCKS") != nullptr; }
  std::optional<gpu_state> read_sensors() const override;
  std::optional<std::string> outputs_unavailable() const override;
  std::optional<std::string> broken() override;

private:
  device_info describe(int visible) const;
  void open_sensors();

  c10::DeviceIndex index_;
  stream_pool streams_;
  device_info info_;
  std::unique_ptr<nvml_gpu> sensors_;
};

cuda_device::cuda_device(int index, int visible, device_request const& request)
    : index_(static_cast<c10::DeviceIndex>(index)), streams_(index_) {
  C10_CUDA_CHECK(cudaSetDevice(index));
  set_wait_policy(request.sync);
  at::globalContext().lazyInitDevice(c10::kCUDA);
  at::globalContext().setAllowTF32CuBLAS(request.allow_tf32);
  info_ = describe(visible);
  open_sensors();
}

void cuda_device::open_sensors() {
  auto opened = open_nvml(*info_.uuid);
  sensors_ = std::move(opened.gpu);
  if (!sensors_) {
    info_.sensors_unavailable = opened.why_not;
    return;
  }
  info_.mig = sensors_->is_mig();
  if (info_.mig == true) info_.uuid->replace(0, 3, "MIG"); // CUDA tells the number alone
  info_.versions["nvml"] = sensors_->library_version();
  info_.versions["driver"] = sensors_->driver_version();
}

device_info cuda_device::describe(int visible) const {
  auto const p = properties_of(index_);
  std::array<char, 32> pci{};
  C10_CUDA_CHECK(cudaDeviceGetPCIBusId(pci.data(), static_cast<int>(pci.size()), index_));
  auto const cpus = allowed_cpus();
  device_info d;
  d.kind = "cuda";
  d.name = p.name;
  d.index = index_;
  d.uuid = text_of(p.uuid);
  d.pci_bus_id = pci.data();
  d.compute_capability = std::to_string(p.major) + "." + std::to_string(p.minor);
  d.memory_bytes = static_cast<std::int64_t>(p.totalGlobalMem);
  d.visible_devices = visible;
  d.cpu_set = cpus.text;
  d.cpus = cpus.count;
  d.versions = {{"torch", TORCH_VERSION},
                {"cuda_runtime", version_from(cudaRuntimeGetVersion)},
                {"cuda_driver", version_from(cudaDriverGetVersion)},
                {"cublaslt", std::to_string(cublasLtGetVersion())}};
  d.settings = effective_settings();
  d.pretended = is_pretended();
  if (auto const* list = std::getenv("CUDA_VISIBLE_DEVICES")) d.visible_list = list;
  if (!*d.pretended || std::getenv("PRETEND_SMS") != nullptr) d.multiprocessors = p.multiProcessorCount;
  return d;
}

counters cuda_device::read_counters() const { return counters_of(allocator::getDeviceStats(index_)); }

std::optional<std::string> cuda_device::counters_unavailable() const {
  if (auto const backend = allocator::get()->name(); backend != "native")
    return "the allocator's backend is " + backend + ", which does not count events";
  if (read_counters().allocation_events == 0)
    return "the allocator counted nothing although there are tensors: caching is off (PYTORCH_NO_CUDA_MEMORY_CACHING)";
  return std::nullopt;
}

std::int64_t cuda_device::outside_bytes() const {
  std::size_t free = 0, total = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return static_cast<std::int64_t>(total - free) - allocator::getDeviceStats(index_).reserved_bytes[0].current;
}

std::optional<gpu_state> cuda_device::read_sensors() const {
  return sensors_ ? std::optional(sensors_->read()) : std::nullopt;
}

std::optional<std::string> cuda_device::outputs_unavailable() const {
  if (!*info_.pretended) return std::nullopt;
  return "pretend GPU: nothing is computed";
}

// An error that is not sticky is gone once it has been asked for.
std::optional<std::string> cuda_device::broken() {
  static_cast<void>(cudaGetLastError());
  auto const error = cudaDeviceSynchronize();
  if (error == cudaSuccess) return std::nullopt;
  return std::string("CUDA error: ") + cudaGetErrorString(error);
}

} // namespace

int visible_gpus() { return c10::cuda::device_count(); }

std::unique_ptr<device> open_cuda(device_request const& request) {
  auto const seen = what_is_visible(request);
  auto const index = choose_gpu(seen);
  return std::make_unique<cuda_device>(index, static_cast<int>(seen.visible.size()), request);
}

} // namespace plateau
