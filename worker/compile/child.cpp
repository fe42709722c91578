// SPDX-License-Identifier: Apache-2.0
#include "worker/compile/child.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

namespace plateau {

namespace {

void check(int error, std::string const& what) {
  if (error != 0) throw std::system_error(error, std::generic_category(), what);
}

// What posix_spawn does in the child before the program starts.
struct file_actions {
  file_actions() { check(posix_spawn_file_actions_init(&value), "posix_spawn"); }
  ~file_actions() { posix_spawn_file_actions_destroy(&value); }
  file_actions(file_actions const&) = delete;
  file_actions& operator=(file_actions const&) = delete;
  posix_spawn_file_actions_t value;
};

struct attributes {
  attributes() { check(posix_spawnattr_init(&value), "posix_spawn"); }
  ~attributes() { posix_spawnattr_destroy(&value); }
  attributes(attributes const&) = delete;
  attributes& operator=(attributes const&) = delete;
  posix_spawnattr_t value;
};

std::vector<std::string> environment_with(std::map<std::string, std::string> const& changes) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('=')))) out.push_back(std::move(text));
  }
  for (auto const& [name, value] : changes) out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

} // namespace

int run_child(std::vector<std::string> const& arguments, std::map<std::string, std::string> const& environment,
              std::filesystem::path const& log) {
  file_actions files;
  check(posix_spawn_file_actions_addopen(&files.value, 0, "/dev/null", O_RDONLY, 0), "posix_spawn");
  check(posix_spawn_file_actions_addopen(&files.value, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644),
        "posix_spawn");
  check(posix_spawn_file_actions_adddup2(&files.value, 1, 2), "posix_spawn");
  check(posix_spawn_file_actions_addclosefrom_np(&files.value, 3),
        "posix_spawn"); // the rank's socket, the lock

  attributes signals;
  sigset_t none;
  sigemptyset(&none);
  check(posix_spawnattr_setsigmask(&signals.value, &none), "posix_spawn");
  check(posix_spawnattr_setflags(&signals.value, POSIX_SPAWN_SETSIGMASK), "posix_spawn");

  auto argument_texts = arguments;
  auto environment_texts = environment_with(environment);
  pid_t child = 0;
  check(posix_spawnp(&child, arguments[0].c_str(), &files.value, &signals.value, pointers(argument_texts).data(),
                     pointers(environment_texts).data()),
        arguments[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) check(errno, "waiting for " + arguments[0]);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace plateau
