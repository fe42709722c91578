// SPDX-License-Identifier: Apache-2.0
#include "schemas/host.hpp"

#include <ctime>
#include <fstream>
#include <sched.h>
#include <sys/utsname.h>

namespace plateau {

cpu_set allowed_cpus() {
  constexpr int most = 8192; // CPUs; cpu_set_t alone ends at 1024
  cpu_set found;
  auto* const set = CPU_ALLOC(most);
  auto const size = CPU_ALLOC_SIZE(most);
  if (sched_getaffinity(0, size, set) == 0) {
    for (int cpu = 0; cpu < most; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), size, set) == 0) continue;
      int const first = cpu;
      while (cpu + 1 < most && CPU_ISSET_S(static_cast<std::size_t>(cpu + 1), size, set) != 0) ++cpu;
      found.count += cpu - first + 1;
      found.text += (found.text.empty() ? "" : ",") + std::to_string(first);
      if (cpu > first) found.text += "-" + std::to_string(cpu);
    }
  }
  CPU_FREE(set);
  return found;
}

std::string host_name() {
  utsname names{};
  uname(&names);
  return names.nodename;
}

std::string host_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return host_name() + "/" + boot;
}

std::string utc_now(char const* format) {
  std::time_t const now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, format, &parts);
  return text;
}

} // namespace plateau
