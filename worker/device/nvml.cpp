// SPDX-License-Identifier: Apache-2.0
#include "worker/device/nvml.hpp"

#include <array>
#include <dlfcn.h>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace plateau {

namespace {

// nvml.h: nvmlReturn_t, nvmlDevice_t and the other types that are used. A function that a library lacks stays null.
using nvml_result = int;
constexpr nvml_result success = 0, too_small = 7; // NVML_SUCCESS, NVML_ERROR_INSUFFICIENT_SIZE
using device_handle = void*;

struct process_info { // nvmlProcessInfo_t, since NVML 11
  unsigned pid;
  unsigned long long used_bytes; // all ones: not available
  unsigned gpu_instance, compute_instance;
};

struct violation_time { // nvmlViolationTime_t
  unsigned long long reference_us, violation_ns;
};

struct library {
  nvml_result (*init)() = nullptr;
  char const* (*error_string)(nvml_result) = nullptr;
  nvml_result (*library_version)(char*, unsigned) = nullptr;
  nvml_result (*driver_version)(char*, unsigned) = nullptr;
  nvml_result (*handle_by_uuid)(char const*, device_handle*) = nullptr;
  nvml_result (*is_mig)(device_handle, unsigned*) = nullptr;
  nvml_result (*whole_gpu)(device_handle, device_handle*) = nullptr;
  nvml_result (*clock)(device_handle, int, unsigned*) = nullptr;
  nvml_result (*clock_reasons)(device_handle, unsigned long long*) = nullptr;
  nvml_result (*power)(device_handle, unsigned*) = nullptr;
  nvml_result (*temperature)(device_handle, int, unsigned*) = nullptr;
  nvml_result (*violation)(device_handle, int, violation_time*) = nullptr;
  nvml_result (*compute_processes)(device_handle, unsigned*, process_info*) = nullptr;
  nvml_result (*graphics_processes)(device_handle, unsigned*, process_info*) = nullptr;
};

// nvmlClocksEventReasons
constexpr std::array<std::pair<unsigned long long, std::string_view>, 9> reason_bits{{
    {0x1, "gpu_idle"},
    {0x2, "application_clocks"},
    {0x4, "sw_power_cap"},
    {0x8, "hw_slowdown"},
    {0x10, "sync_boost"},
    {0x20, "sw_thermal_slowdown"},
    {0x40, "hw_thermal_slowdown"},
    {0x80, "hw_power_brake"},
    {0x100, "display_clocks"},
}};

// nvmlPerfPolicyType_t: those that hold clocks down against the load's wish
constexpr std::array<std::pair<int, char const*>, 4> policies{
    {{0, "power"}, {1, "thermal"}, {3, "board_limit"}, {5, "reliability"}}};

constexpr int sm_clock = 1, memory_clock = 2, gpu_sensor = 0; // nvmlClockType_t, nvmlTemperatureSensors_t

template <class Function>
void find(void* handle, char const* name, Function& place) {
  place = reinterpret_cast<Function>(dlsym(handle, name));
}

library functions_of(void* handle) {
  library n;
  find(handle, "nvmlInit_v2", n.init);
  find(handle, "nvmlErrorString", n.error_string);
  find(handle, "nvmlSystemGetNVMLVersion", n.library_version);
  find(handle, "nvmlSystemGetDriverVersion", n.driver_version);
  find(handle, "nvmlDeviceGetHandleByUUID", n.handle_by_uuid);
  find(handle, "nvmlDeviceIsMigDeviceHandle", n.is_mig);
  find(handle, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", n.whole_gpu);
  find(handle, "nvmlDeviceGetClockInfo", n.clock);
  find(handle, "nvmlDeviceGetCurrentClocksThrottleReasons", n.clock_reasons);
  find(handle, "nvmlDeviceGetPowerUsage", n.power);
  find(handle, "nvmlDeviceGetTemperature", n.temperature);
  find(handle, "nvmlDeviceGetViolationStatus", n.violation);
  find(handle, "nvmlDeviceGetComputeRunningProcesses_v3", n.compute_processes);
  find(handle, "nvmlDeviceGetGraphicsRunningProcesses_v3", n.graphics_processes);
  return n;
}

// What a function gives through its last argument; nothing where there is no such function or it has no answer.
template <class Value>
std::optional<Value> answer(nvml_result (*ask)(device_handle, Value*), device_handle gpu) {
  Value value{};
  if (ask == nullptr || ask(gpu, &value) != success) return std::nullopt;
  return value;
}
template <class Value>
std::optional<Value> answer(nvml_result (*ask)(device_handle, int, Value*), device_handle gpu, int which) {
  Value value{};
  if (ask == nullptr || ask(gpu, which, &value) != success) return std::nullopt;
  return value;
}

std::optional<std::int64_t> number(std::optional<unsigned> const& value) {
  return value ? std::optional<std::int64_t>(*value) : std::nullopt;
}

std::string text_from(nvml_result (*ask)(char*, unsigned)) {
  std::array<char, 96> text{};
  if (ask == nullptr || ask(text.data(), text.size() - 1) != success) return "unknown";
  return text.data();
}

std::vector<std::string> names_of(unsigned long long bits) {
  std::vector<std::string> names;
  for (auto const& [bit, name] : reason_bits)
    if ((bits & bit) != 0) names.emplace_back(name);
  return names;
}

using process_lister = nvml_result (*)(device_handle, unsigned*, process_info*);

// More may start between two calls, hence the room to spare.
std::optional<std::vector<process_info>> processes_from(process_lister list, device_handle gpu) {
  if (list == nullptr) return std::nullopt;
  std::vector<process_info> found(32);
  for (int tries = 0; tries < 4; ++tries) {
    auto count = static_cast<unsigned>(found.size());
    auto const result = list(gpu, &count, found.data());
    if (result == success) {
      found.resize(count);
      return found;
    }
    if (result != too_small) break;
    found.resize(2 * std::size_t{count} + 32);
  }
  return std::nullopt;
}

gpu_process told(process_info const& p) {
  constexpr auto not_available = ~0ull;
  gpu_process out{p.pid, {}};
  if (p.used_bytes != not_available) out.bytes = static_cast<std::int64_t>(p.used_bytes);
  return out;
}

class real_nvml_gpu final : public nvml_gpu {
public:
  real_nvml_gpu(library n, device_handle part) : nvml_(n), part_(part), whole_(part) {
    if (auto const whole = answer(nvml_.whole_gpu, part); whole && is_mig() == true) whole_ = *whole;
  }

  gpu_state read() const override {
    gpu_state s;
    s.sm_clock_mhz = number(answer(nvml_.clock, whole_, sm_clock));
    s.memory_clock_mhz = number(answer(nvml_.clock, whole_, memory_clock));
    s.power_mw = number(answer(nvml_.power, whole_));
    s.temperature_c = number(answer(nvml_.temperature, whole_, gpu_sensor));
    if (auto const bits = answer(nvml_.clock_reasons, whole_)) s.clock_reasons = names_of(*bits);
    for (auto const& [policy, name] : policies)
      if (auto const time = answer(nvml_.violation, whole_, policy))
        s.held_down_by.push_back({name, static_cast<std::int64_t>(time->violation_ns)});
    s.others = others();
    return s;
  }

  std::optional<bool> is_mig() const override {
    auto const mig = answer(nvml_.is_mig, part_);
    return mig ? std::optional(*mig != 0) : std::nullopt;
  }
  std::string library_version() const override { return text_from(nvml_.library_version); }
  std::string driver_version() const override { return text_from(nvml_.driver_version); }

private:
  std::optional<std::vector<gpu_process>> others() const {
    auto const computing = processes_from(nvml_.compute_processes, part_);
    if (!computing) return std::nullopt;
    bool found_self = false;
    std::vector<gpu_process> others;
    for (auto const& p : *computing) {
      if (p.pid == static_cast<unsigned>(getpid()))
        found_self = true;
      else
        others.push_back(told(p));
    }
    if (!found_self) return std::nullopt;
    for (auto const& p : processes_from(nvml_.graphics_processes, part_).value_or(std::vector<process_info>{}))
      others.push_back(told(p));
    return others;
  }

  library nvml_;
  device_handle part_, whole_; // the same but for MIG
};

} // namespace

opened_nvml open_nvml(std::string const& uuid) {
  void* const handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    auto const* const why = dlerror();
    return {nullptr, "NVML cannot be loaded: " + std::string(why != nullptr ? why : "libnvidia-ml.so.1")};
  }
  auto const n = functions_of(handle);
  if (n.init == nullptr || n.handle_by_uuid == nullptr) return {nullptr, "libnvidia-ml.so.1 is no NVML"};
  auto const in_words = [&](nvml_result r) {
    return n.error_string != nullptr ? std::string(n.error_string(r)) : "error " + std::to_string(r);
  };
  if (auto const result = n.init(); result != success) return {nullptr, "NVML does not start: " + in_words(result)};
  auto const mig_uuid = "MIG-" + uuid.substr(uuid.find('-') + 1);
  for (auto const& id : {uuid, mig_uuid})
    if (device_handle gpu = nullptr; n.handle_by_uuid(id.c_str(), &gpu) == success)
      return {std::make_unique<real_nvml_gpu>(n, gpu), {}};
  return {nullptr, "NVML knows no device " + uuid};
}

} // namespace plateau
