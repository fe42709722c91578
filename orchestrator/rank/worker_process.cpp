// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/rank/worker_process.hpp"

#include "orchestrator/rank/communicator.hpp"
#include "orchestrator/rank/signals.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace plateau {

namespace {

void check(bool ok, std::string const& what) {
  if (!ok) throw std::system_error(errno, std::generic_category(), what);
}

// A descriptor out of the way of the numbers that the worker gets.
descriptor moved_up(int fd, char const* what) {
  descriptor const low(fd);
  check(fd >= 0, what);
  constexpr int above_the_workers = 16;
  descriptor moved(fcntl(fd, F_DUPFD_CLOEXEC, above_the_workers));
  check(moved.get() >= 0, what);
  return moved;
}

// The near end and the far end.
std::pair<descriptor, descriptor> socket_pair() {
  int ends[2] = {-1, -1};
  check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "cannot start a worker: no socket");
  return {descriptor(ends[0]), moved_up(ends[1], "cannot start a worker: no socket")};
}
std::pair<descriptor, descriptor> output_pipe() {
  int ends[2] = {-1, -1};
  check(pipe2(ends, O_CLOEXEC) == 0, "cannot start a worker: no pipe");
  return {descriptor(ends[0]), moved_up(ends[1], "cannot start a worker: no pipe")};
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// Starts the program with the socket and the memory file at the protocol's numbers and nothing else of ours.
pid_t spawn(worker_command const& command, int socket, int memory, int output) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, 1);
  posix_spawn_file_actions_adddup2(&files, output, 2);
  posix_spawn_file_actions_adddup2(&files, socket, protocol::socket_fd);
  posix_spawn_file_actions_adddup2(&files, memory, protocol::progress_fd);
  posix_spawn_file_actions_addclosefrom_np(&files, protocol::progress_fd + 1); // MPI's sockets among them

  // Launchers send signals to every descendant they can find; what becomes of a worker is its rank's to
  // decide.
  sigset_t blocked, fresh;
  sigemptyset(&blocked);
  for (int const signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&blocked, signal);
  sigfillset(&fresh);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  posix_spawnattr_setsigdefault(&attributes, &fresh);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<std::string> arguments{command.program.string()}, variables;
  for (auto const& [name, value] : command.env) variables.push_back(name + "=" + value);
  pid_t pid = -1;
  int const error = posix_spawn(&pid, command.program.c_str(), &files, &attributes, pointers(arguments).data(),
                                pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0)
    throw std::system_error(error, std::generic_category(), "cannot start the worker " + command.program.string());
  return pid;
}

constexpr auto relaxed = std::memory_order_relaxed;

std::string seconds_text(double seconds) {
  auto text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

} // namespace

patience patience_in(phase p, deadlines const& limits) {
  switch (p) {
  case phase::compiling: return {limits.compile, "did not finish compiling the package"};
  case phase::warming_up: return {limits.stall, "finished no warm-up request"};
  case phase::keeping_clocks: return {limits.stall, "finished no request to keep the clocks up"};
  case phase::timed: return {limits.stall, "finished no timed request"};
  case phase::soaking: return {limits.stall, "finished no soak request"};
  case phase::checking_fabric: // the worker has this deadline itself; twice, so that it can say what it was waiting for
    return {2 * limits.fabric, "did not finish checking the fabric"};
  case phase::starting: return {limits.prepare, "did not come up"};
  case phase::idle:
  case phase::waiting: return {limits.prepare, "did not answer"};
  case phase::finishing: return {limits.prepare, "did not hand over its result"};
  case phase::preparing: break;
  }
  return {limits.prepare, "was not ready"};
}

std::string describe_end(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return "exited with code " + std::to_string(WEXITSTATUS(wait_status));
  int const signal = WTERMSIG(wait_status);
  auto const* name = sigabbrev_np(signal);
  std::string text = "killed by " + (name != nullptr ? "SIG" + std::string(name) : std::to_string(signal));
  if (signal == SIGKILL) text += " (by the kernel, for lack of memory?)";
  return text;
}

stall_watch::stall_watch(progress const& p, clock::time_point now)
    : phase_(p.now.load(relaxed)), window_(p.soak_window.load(relaxed)), since_(now) {
  for (std::size_t t = 0; t < threads_.size(); ++t)
    threads_[t] = {p.threads[t].requests.load(relaxed), p.threads[t].serving.load(relaxed), now};
}

std::optional<std::string> stall_watch::look(progress const& p, deadlines const& limits, clock::time_point now) {
  auto const before = std::exchange(phase_, p.now.load(relaxed));
  auto const window = std::exchange(window_, p.soak_window.load(relaxed));
  if (phase_ != before || window_ != window) since_ = now;
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    auto const requests = p.threads[t].requests.load(relaxed);
    auto const serving = p.threads[t].serving.load(relaxed);
    auto& seen = threads_[t];
    if (requests != seen.requests || serving != seen.serving) since_ = seen.since = now;
    if (phase_ != before) seen.since = now;
    seen.requests = requests;
    seen.serving = serving;
  }
  return overdue(limits, now);
}

std::optional<std::string> stall_watch::overdue(deadlines const& limits, clock::time_point now) const {
  auto const [allowed, did_not] = patience_in(phase_, limits);
  auto const is_over = [&](clock::time_point since) {
    return std::chrono::duration<double>(now - since).count() > allowed;
  };
  auto const what = std::string(did_not) + " within " + seconds_text(allowed);
  if (is_over(since_)) return what;
  for (std::size_t t = 0; t < threads_.size(); ++t)
    if (threads_[t].serving && is_over(threads_[t].since)) return "stream thread " + std::to_string(t) + " " + what;
  return std::nullopt;
}

worker_process::worker_process(worker_command const& command) {
  auto [near, far] = socket_pair();
  auto [printed, printing] = output_pipe();
  auto const memory =
      moved_up(memfd_create("plateau-progress", MFD_CLOEXEC), "cannot start a worker: no shared memory");
  check(ftruncate(memory.get(), sizeof(progress)) == 0, "cannot start a worker: no shared memory");
  void* const mapped = mmap(nullptr, sizeof(progress), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  check(mapped != MAP_FAILED, "cannot start a worker: no shared memory");
  progress_.reset(static_cast<progress*>(mapped));
  socket_ = std::move(near);
  log_.emplace(command.log, std::move(printed));
  log_name_ = (command.log.parent_path().filename() / command.log.filename()).string();
  pid_ = spawn(command, far.get(), memory.get(), printing.get());
}

worker_process::~worker_process() { kill_group(); }

void worker_process::unmap::operator()(progress* p) const { munmap(p, sizeof(progress)); }

void worker_process::send(protocol::command const& command) {
  try {
    protocol::send_frame(socket_.get(), protocol::to_frame(command));
  } catch (std::system_error const&) {
    // gone: wait() says how
  }
}

std::variant<protocol::event, worker_lost> worker_process::wait(deadlines const& limits, look const& while_waiting) {
  constexpr int tick_ms = 100;
  using clock = stall_watch::clock;
  stall_watch watch(*progress_, clock::now());
  std::vector<std::uint8_t> chunk(std::size_t{1} << 20);
  try {
    while (true) {
      if (auto body = frames_.next()) return protocol::event_of(*body);
      std::array<pollfd, 2> watched{pollfd{socket_.get(), POLLIN, 0}, pollfd{log_->fd(), POLLIN, 0}};
      poll(watched.data(), watched.size(), tick_ms);
      if (requested_stop() == stop_request::now) throw terminated();
      if (watched[1].revents != 0) log_->drain();
      if (watched[0].revents != 0) {
        auto const n = recv(socket_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return lost_connection();
        if (n > 0) frames_.add(chunk.data(), static_cast<std::size_t>(n));
        if (auto body = frames_.next()) return protocol::event_of(*body);
      } else if (auto const status = ended(std::chrono::milliseconds(0))) { // its children may hold the socket open
        if (auto body = last_words(chunk)) return protocol::event_of(*body);
        return ended_by_itself(*status);
      }
      if (auto overdue = watch.look(*progress_, limits, clock::now()))
        return lost(case_status::timed_out, std::move(*overdue));
      if (auto reason = while_waiting(*progress_)) {
        kill_group();
        return worker_lost{case_status::missing, *reason};
      }
    }
  } catch (format_error const& e) {
    return lost(case_status::crashed, std::string("sent what is not of the protocol: ") + e.what());
  }
}

// A frame that a worker sent just before it ended.
std::optional<std::vector<std::uint8_t>> worker_process::last_words(std::vector<std::uint8_t>& chunk) {
  for (ssize_t n = 0; (n = recv(socket_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT)) > 0;)
    frames_.add(chunk.data(), static_cast<std::size_t>(n));
  return frames_.next();
}

void worker_process::stop() {
  send(protocol::stop{});
  ended(std::chrono::seconds(5));
  kill_group();
}

std::optional<int> worker_process::ended(std::chrono::milliseconds patience) {
  using clock = std::chrono::steady_clock;
  auto const until = clock::now() + patience;
  while (pid_ > 0) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      started_.outlive(std::chrono::milliseconds(0)); // what it started and left behind
      return status;
    }
    if (clock::now() >= until) break;
    log_->drain(); // it may be waiting for room in the pipe
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::nullopt;
}

void worker_process::kill_group() {
  if (pid_ <= 0) return;
  killpg(pid_, SIGKILL);
  ended(std::chrono::seconds(10)); // a process stuck in the kernel is left to it
  pid_ = -1;
}

worker_lost worker_process::lost(case_status status, std::string reason) {
  kill_group();
  log_->drain();
  reason += " (phase: " + std::string(name_of(progress_->now.load(std::memory_order_relaxed))) + ")";
  auto const last = log_->last_line();
  reason += last.empty() ? "; it printed nothing" : "; it last printed \"" + last + "\", see " + log_name_;
  return {status, std::move(reason)};
}

// Who ends all of a job, as Slurm does, kills worker and rank one after the other. This rank may be the next, and then
// the worker did not crash.
worker_lost worker_process::ended_by_itself(int wait_status) {
  constexpr auto between_two_kills = std::chrono::milliseconds(300);
  if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL) std::this_thread::sleep_for(between_two_kills);
  if (requested_stop() == stop_request::now) throw terminated();
  return lost(case_status::crashed, describe_end(wait_status));
}

worker_lost worker_process::lost_connection() {
  if (auto const status = ended(std::chrono::seconds(2))) return ended_by_itself(*status);
  return lost(case_status::crashed, "closed its connection without ending");
}

} // namespace plateau
