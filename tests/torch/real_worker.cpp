// SPDX-License-Identifier: Apache-2.0
#include "real_worker.hpp"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace plateau {

void become_worker(int socket, int progress_file) {
  setpgid(0, 0);
  constexpr int above = 100; // out of the way of the two numbers that the worker looks at
  int const s = fcntl(socket, F_DUPFD, above);
  int const p = progress_file < 0 ? -1 : fcntl(progress_file, F_DUPFD, above);
  dup2(s, protocol::socket_fd);
  if (p >= 0) dup2(p, protocol::progress_fd);
  close_range(p >= 0 ? protocol::progress_fd + 1u : protocol::socket_fd + 1u, ~0u, 0);
  execl(PLATEAU_WORKER, "plateau-worker", nullptr);
  _exit(127);
}

void throw_unexpected(std::optional<protocol::event> const& e) {
  if (!e) throw std::runtime_error("the worker has closed");
  if (auto const* failure = std::get_if<protocol::failure>(&*e))
    throw std::runtime_error(std::string(name_of(failure->status)) + ": " + failure->reason);
  throw std::runtime_error("another event, number " + std::to_string(e->index()));
}

real_worker::real_worker(std::map<std::string, std::string> const& environment) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) throw std::runtime_error("no socket pair");
  int const file = memfd_create("progress", 0);
  if (ftruncate(file, sizeof(progress)) != 0) throw std::runtime_error("no progress file");
  progress_ = static_cast<progress*>(mmap(nullptr, sizeof(progress), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  pid_ = fork();
  if (pid_ == 0) {
    for (auto const& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    become_worker(ends[1], file);
  }
  setpgid(pid_, pid_); // whoever of the two comes first
  ::close(ends[1]);
  ::close(file);
  socket_ = ends[0];
}

real_worker::~real_worker() {
  close();
  if (pid_ > 0) {
    killpg(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  munmap(progress_, sizeof(progress));
}

void real_worker::send(protocol::command const& c) { protocol::send_frame(socket_, protocol::to_frame(c)); }

std::optional<protocol::event> real_worker::receive() {
  auto const frame = protocol::receive_frame(socket_, received_);
  return frame ? std::optional(protocol::event_of(*frame)) : std::nullopt;
}

bool real_worker::says_something_within(std::chrono::milliseconds patience) {
  pollfd end{socket_, POLLIN, 0};
  return poll(&end, 1, static_cast<int>(patience.count())) > 0;
}

device_info real_worker::greet(job const& run) {
  protocol::hello h;
  h.run_id = "a run";
  h.rank = 3;
  h.run = run;
  send(h);
  return receive_a<device_info>();
}

case_result real_worker::run(case_id const& id, std::vector<memory_point>* points) {
  send(protocol::prepare{id});
  receive_a<protocol::ready>();
  return start(points);
}

case_result real_worker::start(std::vector<memory_point>* points) {
  send(protocol::start{});
  while (true) {
    auto e = receive();
    if (e && std::holds_alternative<case_result>(*e)) return std::get<case_result>(std::move(*e));
    if (!e || !std::holds_alternative<memory_point>(*e)) throw_unexpected(e);
    if (points) points->push_back(std::get<memory_point>(*e));
  }
}

void real_worker::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

int real_worker::exit_code() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

} // namespace plateau
