// SPDX-License-Identifier: Apache-2.0
// plateau-worker: owns one device and runs cases on it, as the rank that started it says.
#include "schemas/progress.hpp"
#include "schemas/protocol.hpp"
#include "worker/server.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <malloc.h>
#include <new>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace plateau;

bool is_started_by_a_rank() {
  struct stat status {};
  return fstat(protocol::socket_fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

// With the whole group: a worker's own child, a compiler say, must not outlive it. A rank gives its worker a group of
// its own; in anybody else's group the worker ends alone.
extern "C" void die_with_the_group(int) {
  if (getpgrp() == getpid()) kill(0, SIGKILL);
  _exit(1);
}

// A rank that is killed cannot stop its worker, so the kernel tells the worker. A rank that died before it was asked
// to is recognised by the process at the socket's other end being gone.
void die_with_the_rank() {
  std::signal(SIGRTMIN, die_with_the_group);
  prctl(PR_SET_PDEATHSIG, SIGRTMIN);
  ucred rank{};
  socklen_t size = sizeof rank;
  if (getsockopt(protocol::socket_fd, SOL_SOCKET, SO_PEERCRED, &rank, &size) != 0) return;
  if (getppid() != rank.pid && kill(rank.pid, 0) != 0 && errno == ESRCH) die_with_the_group(0);
}

// Launchers and batch systems signal every process that they can find; what follows is the rank's decision.
void leave_signals_to_the_rank() {
  for (int const number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) std::signal(number, SIG_IGN);
}

// The worker's own children must not keep the rank's descriptors open once the worker is gone.
void keep_from_children(int fd) { fcntl(fd, F_SETFD, FD_CLOEXEC); }

// glibc keeps small freed blocks apart in fast bins, and merges them all back when a block beside the unused end of its
// heap is freed. oneDNN, in which Torch's GELU runs, frees such blocks with each request: the bins cost and never pay.
void do_without_fast_bins() { mallopt(M_MXFAST, 0); }

// The rank's memory file; without one, memory that nobody looks at.
progress& map_progress() {
  struct stat status {};
  bool const shared = fstat(protocol::progress_fd, &status) == 0 && S_ISREG(status.st_mode) &&
                      status.st_size >= static_cast<off_t>(sizeof(progress));
  void* const memory = mmap(nullptr, sizeof(progress), PROT_READ | PROT_WRITE,
                            shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, shared ? protocol::progress_fd : -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  if (shared) keep_from_children(protocol::progress_fd);
  return *std::launder(static_cast<progress*>(memory)); // zeros are a valid one
}

} // namespace

int main() {
  if (!is_started_by_a_rank()) {
    std::fputs("plateau-worker is started by plateau run; to see what it would measure, use plateau run JOB "
               "--dry-run\n",
               stderr);
    return 2;
  }
  die_with_the_rank();
  leave_signals_to_the_rank();
  keep_from_children(protocol::socket_fd);
  do_without_fast_bins();
  int const code = serve(protocol::socket_fd, map_progress());
  std::fflush(nullptr);
  _exit(code); // tearing Torch down takes a tenth of a second, and nobody needs it
}
