// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/process/descendants.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace plateau {

namespace {

using clock = std::chrono::steady_clock;

// Of a process, from its line in /proc: "pid (name) state parent ..."; the name may hold anything. 0 when it is gone.
pid_t parent_of(std::filesystem::path const& process) {
  std::ifstream file(process / "stat");
  std::string line;
  std::getline(file, line, '\0');
  auto const after_name = line.rfind(')');
  if (after_name == std::string::npos || after_name + 4 >= line.size()) return 0;
  return static_cast<pid_t>(std::strtol(line.c_str() + after_name + 4, nullptr, 10));
}

// The children of this process, the dead that were not waited for among them; ascending.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  auto const self = getpid();
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry("/proc", ignored), end; entry != end; entry.increment(ignored)) {
    auto const name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (parent_of(entry->path()) == self) found.push_back(static_cast<pid_t>(std::stol(name)));
  }
  std::ranges::sort(found);
  return found;
}

} // namespace

descendants::descendants() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  others_ = children();
}

void descendants::outlive(std::chrono::milliseconds patience) const {
  constexpr auto longest_death = std::chrono::seconds(5);
  auto const kill_from = clock::now() + patience;
  while (true) {
    auto left = children();
    std::erase_if(left, [this](pid_t pid) { return std::ranges::binary_search(others_, pid); });
    auto const now = clock::now();
    if (left.empty() || now > kill_from + longest_death) return;
    for (auto const pid : left) {
      if (now >= kill_from) kill(pid, SIGKILL);
      waitpid(pid, nullptr, WNOHANG); // its own children are ours at the next look
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

} // namespace plateau
