// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/folder_lock.hpp"

#include "schemas/codec.hpp"
#include "schemas/error.hpp"
#include "schemas/host.hpp"

#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace plateau {

namespace {

std::string holder(int fd) {
  std::array<char, 512> text{};
  auto const size = pread(fd, text.data(), text.size(), 0);
  auto const written = std::string(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  auto const line = as_utf8(written.substr(0, written.find('\n')));
  return line.empty() ? "another process" : line;
}

// For people alone, so it may fail.
void sign(int fd) {
  auto const text = "process " + std::to_string(getpid()) + " on " + host_name() + ", since " + utc_now() + "\n";
  [[maybe_unused]] auto const emptied = ftruncate(fd, 0);
  [[maybe_unused]] auto const written = pwrite(fd, text.data(), text.size(), 0);
}

// Takes the lock, or throws. A file system without locks leaves it to the user not to run a run twice.
void take(int fd, int how, run_folder const& folder) {
  if (flock(fd, how | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  auto const by = holder(fd);
  close(fd);
  throw input_error(folder.path.string() + ": is being run by " + by + "; wait until that has ended, or stop it");
}

} // namespace

folder_lock::folder_lock(run_folder const& folder)
    : fd_(open(folder.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "cannot write " + folder.lock().string());
  take(fd_, LOCK_EX, folder);
  sign(fd_);
}

folder_lock::~folder_lock() { close(fd_); }

void refuse_if_held(run_folder const& folder) {
  int const fd = open(folder.lock().c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return; // nobody took it, or it is not for this user to see
  take(fd, LOCK_SH, folder);
  close(fd);
}

} // namespace plateau
