// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/process/child.hpp"

#include "orchestrator/process/descendants.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <optional>
#include <spawn.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace plateau {

namespace {

pid_t start(std::vector<std::string>& command, std::filesystem::path const& output) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  std::vector<char*> arguments;
  for (auto& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = -1;
  int const error = posix_spawnp(&pid, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::system_error(error, std::generic_category(), "cannot start " + command[0]);
  return pid;
}

volatile std::sig_atomic_t caught = 0;

void on_signal(int signal) { caught = signal; }

/// While it lives, a request to stop this process is noted, not obeyed.
class noting_signals {
public:
  noting_signals() {
    caught = 0;
    struct sigaction action {};
    action.sa_handler = on_signal;
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &action, &before_[i]);
  }
  ~noting_signals() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
  }
  noting_signals(noting_signals const&) = delete;
  noting_signals& operator=(noting_signals const&) = delete;

private:
  static constexpr std::array signals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, signals.size()> before_{};
};

// How the process ended; nothing when it took longer, or when `stop` says so.
template <class Stop>
std::optional<int> wait_for(pid_t pid, std::chrono::seconds longest, Stop stop) {
  auto const until = std::chrono::steady_clock::now() + longest;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (stop() || std::chrono::steady_clock::now() > until) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return status;
}

} // namespace

int run_child(std::vector<std::string> command, std::filesystem::path const& output, std::chrono::seconds longest) {
  descendants const started;
  noting_signals const noting;
  auto const pid = start(command, output);
  auto const status = wait_for(pid, longest, [] { return caught != 0; });
  if (!status && caught != 0) { // politely first: a launcher has folders to clear away
    kill(pid, SIGTERM);
    constexpr auto polite = std::chrono::seconds(10);
    wait_for(pid, polite, [] { return false; });
  }
  started.outlive(std::chrono::milliseconds(0));
  if (!status && caught != 0) throw interrupted(caught);
  if (!status) return 128 + SIGKILL;
  return WIFSIGNALED(*status) ? 128 + WTERMSIG(*status) : WEXITSTATUS(*status);
}

} // namespace plateau
