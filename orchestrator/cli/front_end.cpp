// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/cli/front_end.hpp"

#include "orchestrator/cli/terminal.hpp"
#include "orchestrator/launch/run_line.hpp"
#include "orchestrator/report/table.hpp"
#include "orchestrator/store/assemble.hpp"
#include "orchestrator/store/durable.hpp"
#include "schemas/error.hpp"
#include "schemas/host.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <iostream>
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

namespace plateau {

namespace {

volatile std::sig_atomic_t signals_seen = 0;

void on_signal(int) { signals_seen = signals_seen + 1; }

void install_front_end_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal; // no SA_RESTART: poll() must return
  for (int const signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN); // whoever read our output is gone; the run goes on
}

// A launcher that runs, in a process group of its own, and the reading ends of its two outputs.
struct launcher {
  pid_t pid;
  int out, err;
};

launcher start(launch_plan const& plan) {
  auto command = launch_command(plan);
  std::vector<std::string> variables;
  for (auto const& [name, value] : launch_environment(plan, current_environment(), geteuid() == 0))
    variables.push_back(name + "=" + value);
  std::vector<char*> arguments, environment;
  for (auto& word : command) arguments.push_back(word.data());
  for (auto& variable : variables) environment.push_back(variable.data());
  arguments.push_back(nullptr);
  environment.push_back(nullptr);

  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot start the ranks: no pipe");
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out[1], 1);
  posix_spawn_file_actions_adddup2(&files, err[1], 2);
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  int const error = posix_spawnp(&pid, arguments[0], &files, &attributes, arguments.data(), environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  close(out[1]);
  close(err[1]);
  if (error != 0)
    throw input_error(
        "cannot start " + command[0] + " (" + std::generic_category().message(error) + "); " +
        (command[0] == "mpirun" ? "install Open MPI, or start the ranks yourself" : "is Slurm's srun on the PATH?"));
  return {pid, out[0], err[0]};
}

// Splits what comes from a descriptor into lines.
class line_reader {
public:
  explicit line_reader(int fd) : fd_(fd) {}
  ~line_reader() { close(fd_); }
  line_reader(line_reader const&) = delete;
  line_reader& operator=(line_reader const&) = delete;
  int fd() const { return fd_; }

  /// Reads what is there and hands on whole lines; false at the end.
  template <class Take>
  bool read(Take take) {
    std::array<char, 64 * 1024> chunk;
    auto const n = ::read(fd_, chunk.data(), chunk.size());
    if (n < 0) return errno == EINTR || errno == EAGAIN;
    rest_.append(chunk.data(), static_cast<std::size_t>(n));
    std::size_t at = 0;
    for (auto end = rest_.find('\n'); end != std::string::npos; at = end + 1, end = rest_.find('\n', at))
      take(std::string_view(rest_).substr(at, end - at));
    rest_.erase(0, at);
    if (n == 0 && !rest_.empty()) take(std::string_view(rest_));
    return n > 0;
  }

private:
  int fd_;
  std::string rest_;
};

// Shows what the ranks say until the launcher has ended. Gives the reason when they refused the run.
std::optional<std::string> follow(launcher const& ranks, terminal& screen) {
  line_reader out(ranks.out), err(ranks.err);
  std::optional<std::string> refusal;
  auto const take = [&](std::string_view text) {
    auto const line = run_line_of(text);
    if (!line)
      screen.line(text);
    else if (line->what == run_line::kind::note)
      screen.line(line->text);
    else if (line->what == run_line::kind::status)
      screen.status(line->text);
    else
      refusal = line->text;
  };
  int passed_on = 0;
  bool out_open = true, err_open = true;
  while (out_open || err_open) {
    std::array<pollfd, 2> watched{pollfd{out_open ? out.fd() : -1, POLLIN, 0},
                                  pollfd{err_open ? err.fd() : -1, POLLIN, 0}};
    constexpr int tick_ms = 200;
    poll(watched.data(), watched.size(), tick_ms);
    if (signals_seen > passed_on) {
      screen.line(passed_on == 0 ? "stopping after this case; once more to stop now" : "stopping now");
      kill(ranks.pid, passed_on == 0 ? SIGUSR1 : SIGTERM);
      ++passed_on;
    }
    if (watched[0].revents != 0) out_open = out.read(take);
    if (watched[1].revents != 0) err_open = err.read(take);
  }
  screen.status("");
  return refusal;
}

// The ranks are gone without a word: makes of their folder what can be made of it.
exit_code assemble_what_is_left(std::filesystem::path const& folder, int wait_status) {
  auto const how = WIFSIGNALED(wait_status)
                       ? "the launcher was killed by signal " + std::to_string(WTERMSIG(wait_status))
                       : "the launcher exited with code " + std::to_string(WEXITSTATUS(wait_status));
  std::error_code ignored;
  if (!std::filesystem::exists(folder / "run.json", ignored)) {
    std::cerr << "the ranks did not start the run: " << how << "; nothing was measured\n";
    return exit_code::bad_input;
  }
  std::cerr << "the ranks died before the run was complete: " << how << "; keeping every finished case\n";
  auto const left = open_run_folder(folder);
  run_outcome const outcome{static_cast<std::int64_t>(exit_code::incomplete), "the ranks died: " + how, utc_now()};
  auto const assembled = assemble(left, outcome);
  for (auto const& complaint : assembled.complaints) std::cerr << complaint << '\n';
  write_outcome(left, outcome);
  return exit_code::incomplete;
}

} // namespace

exit_code start_ranks(launch_plan const& plan, std::filesystem::path const& folder) {
  install_front_end_signals();
  auto const ranks = start(plan);
  std::optional<std::string> refusal;
  {
    terminal screen;
    refusal = follow(ranks, screen);
  }
  int status = 0;
  while (waitpid(ranks.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (refusal) throw input_error(*refusal);
  std::error_code ignored;
  if (!std::filesystem::exists(folder / "outcome.json", ignored)) {
    auto const code = assemble_what_is_left(folder, status);
    if (code == exit_code::incomplete) show_end_of_run(folder);
    return code;
  }
  show_end_of_run(folder);
  return static_cast<exit_code>(read_outcome(open_run_folder(folder))->exit_code);
}

void show_end_of_run(std::filesystem::path const& folder) {
  auto const bytes = read_file(folder / "summary.json");
  auto const relative = std::filesystem::proximate(folder).string();
  auto const shown = relative.starts_with("..") ? folder.string() : relative;
  std::cout << '\n' << table(json::parse(bytes), {colour_wanted()});
  std::cout << "next: plateau show " << shown << '\n' << shown << std::endl;
}

} // namespace plateau
