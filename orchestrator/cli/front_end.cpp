// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/cli/front_end.hpp"

#include "orchestrator/analysis/attempts.hpp"
#include "orchestrator/analysis/gates.hpp"
#include "orchestrator/cli/terminal.hpp"
#include "orchestrator/launch/run_line.hpp"
#include "orchestrator/process/descendants.hpp"
#include "orchestrator/report/table.hpp"
#include "orchestrator/store/assemble.hpp"
#include "orchestrator/store/durable.hpp"
#include "orchestrator/store/folder_lock.hpp"
#include "orchestrator/store/resume.hpp"
#include "schemas/error.hpp"
#include "schemas/host.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <iostream>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace plateau {

namespace {

// What the user asked for: 1 to stop after the current case, 2 at once, 3 and more not to wait for anything.
volatile std::sig_atomic_t asked_to_stop = 0;

// A terminal that closes sends SIGHUP more than once, and means it once; so does SIGUSR1, a batch system's word that
// time will be up.
void on_signal(int signal) {
  bool const says_it_once = signal == SIGHUP || signal == SIGUSR1;
  if (!says_it_once || asked_to_stop == 0) asked_to_stop = asked_to_stop + 1;
}

void install_front_end_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal; // no SA_RESTART: poll() must return
  for (int const signal : {SIGINT, SIGTERM, SIGUSR1}) sigaction(signal, &action, nullptr);
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr); // nohup has it ignored
  std::signal(SIGPIPE, SIG_IGN); // whoever read our output is gone; the run goes on
}

// A launcher that runs, in a process group of its own, and the reading ends of its two outputs.
struct launcher {
  pid_t pid;
  int out, err;
};

std::pair<int, int> new_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot start the ranks: no pipe");
  return {ends[0], ends[1]};
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// In the new process: becomes the launcher, or tells `report` why not. Should this front end be killed, the launcher is
// told to terminate, and ends the ranks: what posix_spawn cannot ask for.
[[noreturn]] void become_launcher(std::vector<char*> const& arguments, std::vector<char*> const& environment, int out,
                                  int err, int report, pid_t front_end) {
  setpgid(0, 0);
  for (int const signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1}) std::signal(signal, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != front_end) _exit(1); // killed before that
  int const nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0 && dup2(nothing, 0) == 0 && dup2(out, 1) == 1 && dup2(err, 2) == 2)
    execvpe(arguments[0], arguments.data(), environment.data());
  int const error = errno;
  [[maybe_unused]] auto const told = write(report, &error, sizeof error);
  _exit(1);
}

launcher start(launch_plan const& plan) {
  auto command = launch_command(plan);
  std::vector<std::string> variables;
  for (auto const& [name, value] : launch_environment(plan, current_environment(), geteuid() == 0))
    variables.push_back(name + "=" + value);
  auto const arguments = pointers(command), environment = pointers(variables);
  auto const [out, their_out] = new_pipe();
  auto const [err, their_err] = new_pipe();
  auto const [report, their_report] = new_pipe();
  auto const front_end = getpid();
  auto const pid = fork();
  if (pid == 0) become_launcher(arguments, environment, their_out, their_err, their_report, front_end);
  int error = pid < 0 ? errno : 0;
  for (int const fd : {their_out, their_err, their_report}) close(fd);
  [[maybe_unused]] auto const told = read(report, &error, sizeof error); // nothing when it became the launcher
  close(report);
  if (error != 0)
    throw input_error(
        "cannot start " + command[0] + " (" + std::generic_category().message(error) + "); " +
        (command[0] == "mpirun" ? "install Open MPI, or start the ranks yourself" : "is Slurm's srun on the PATH?"));
  return {pid, out, err};
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

// What the ranks said until the launcher had ended.
struct heard {
  bool started = false;               ///< they were up: from then on they know what SIGUSR1 means
  std::optional<std::string> refusal; ///< why they refused the run
};

// Passes the user's wish on to the launcher, which tells the ranks: to stop after the case, at once, or to die.
void pass_on(int wish, launcher const& ranks, bool started, terminal& screen) {
  if (wish == 1 && started) {
    screen.line("stopping after this case; once more to stop now");
    kill(ranks.pid, SIGUSR1);
  } else if (wish <= 2) {
    screen.line("stopping now");
    kill(ranks.pid, SIGTERM);
  } else {
    killpg(ranks.pid, SIGKILL); // ranks whose launcher is gone end, too
  }
}

heard follow(launcher const& ranks, terminal& screen) {
  line_reader out(ranks.out), err(ranks.err);
  heard from_ranks;
  auto const take = [&](std::string_view text) {
    auto const line = run_line_of(text);
    from_ranks.started = from_ranks.started || line;
    if (!line)
      screen.line(text);
    else if (line->what == run_line::kind::note)
      screen.line(line->text);
    else if (line->what == run_line::kind::status)
      screen.status(line->text);
    else
      from_ranks.refusal = line->text;
  };
  int passed_on = 0;
  bool out_open = true, err_open = true;
  while (out_open || err_open) {
    std::array<pollfd, 2> watched{pollfd{out_open ? out.fd() : -1, POLLIN, 0},
                                  pollfd{err_open ? err.fd() : -1, POLLIN, 0}};
    constexpr int tick_ms = 200;
    poll(watched.data(), watched.size(), tick_ms);
    if (asked_to_stop > passed_on) pass_on(++passed_on, ranks, from_ranks.started, screen);
    if (watched[0].revents != 0) out_open = out.read(take);
    if (watched[1].revents != 0) err_open = err.read(take);
  }
  screen.status("");
  return from_ranks;
}

// Why the ranks are gone without a word.
std::string end_of(int wait_status) {
  if (asked_to_stop > 0) return "stopped at once on request";
  return "the ranks died: " + (WIFSIGNALED(wait_status)
                                   ? "the launcher was killed by signal " + std::to_string(WTERMSIG(wait_status))
                                   : "the launcher exited with code " + std::to_string(WEXITSTATUS(wait_status)));
}

// The ranks made the folder, if it is there: it was absent or empty before. Without run.json it is of no use to anyone.
exit_code nothing_measured(std::filesystem::path const& folder, std::string const& why, bool started) {
  bool const incomplete = started || asked_to_stop > 0;
  std::error_code ignored;
  if (incomplete) std::filesystem::remove_all(folder, ignored);
  std::cerr << why << "; nothing was measured\n";
  return incomplete ? exit_code::incomplete : exit_code::bad_input;
}

// The attempt to resume a run came to nothing, and has changed nothing.
exit_code nothing_resumed(std::filesystem::path const& folder, std::string const& why, bool started) {
  std::cerr << why << "; nothing was measured, and " << folder.string() << " is as it was\n";
  return started || asked_to_stop > 0 ? exit_code::incomplete : exit_code::bad_input;
}

// The ranks of an srun that was killed are no descendants of this process: until Slurm ends them they live, and write.
folder_lock lock_after_the_ranks(run_folder const& left) {
  constexpr auto slurm_ends_them_within = std::chrono::seconds(60);
  for (auto const until = std::chrono::steady_clock::now() + slurm_ends_them_within;;) {
    try {
      return folder_lock(left);
    } catch (input_error const&) {
      if (std::chrono::steady_clock::now() > until) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// Makes of the ranks' folder what can be made of it.
exit_code assemble_what_is_left(std::filesystem::path const& folder, std::string const& why) {
  std::cerr << why << "; keeping every finished case\n";
  bool rehearsal = false;
  try {
    auto const left = open_run_folder(folder);
    rehearsal = read_run_info(left).rehearsed.has_value();
    auto const only_here = lock_after_the_ranks(left);
    run_outcome const outcome{static_cast<std::int64_t>(exit_code::incomplete), why, utc_now()};
    auto const assembled = assemble(left, outcome);
    for (auto const& complaint : assembled.complaints) std::cerr << complaint << '\n';
    write_outcome(left, outcome);
    show_end_of_run(folder);
  } catch (std::exception const& e) {
    std::cerr << e.what() << "; " << how_to_go_on(folder, rehearsal) << '\n';
  }
  return exit_code::incomplete;
}

} // namespace

exit_code start_ranks(launch_plan const& plan, std::filesystem::path const& folder, std::int64_t attempts) {
  install_front_end_signals();
  descendants const started;
  auto const ranks = start(plan);
  heard from_ranks;
  {
    terminal screen;
    from_ranks = follow(ranks, screen);
  }
  int status = 0;
  while (waitpid(ranks.pid, &status, 0) < 0 && errno == EINTR) {
  }
  // a launcher that was killed, or told twice to end, leaves ranks behind, and they may still be writing
  constexpr auto ranks_end_within = std::chrono::seconds(5);
  started.outlive(ranks_end_within);
  if (from_ranks.refusal) throw input_error(*from_ranks.refusal);
  std::error_code ignored;
  if (!std::filesystem::exists(folder / "run.json", ignored))
    return nothing_measured(folder, end_of(status), from_ranks.started);
  if (attempts > 0 && std::ssize(attempts_of(read_run_info({folder}))) == attempts)
    return nothing_resumed(folder, end_of(status), from_ranks.started);
  if (!std::filesystem::exists(folder / "outcome.json", ignored)) return assemble_what_is_left(folder, end_of(status));
  show_end_of_run(folder);
  return static_cast<exit_code>(read_outcome(open_run_folder(folder))->exit_code);
}

void show_end_of_run(std::filesystem::path const& folder) {
  auto const bytes = read_file(folder / "summary.json");
  auto const summary = json::parse(bytes);
  auto const relative = std::filesystem::proximate(folder).string();
  auto const shown = relative.starts_with("..") ? folder.string() : relative;
  std::cout << '\n' << table(summary, {colour_wanted()});
  auto const failed = failed_gates(summary, decode<gates>(summary["run"]["fail_on"]));
  if (!failed.empty()) std::cout << "gate failed: " << failed << '\n';
  auto const& run = summary["run"];
  bool const resumable = !summary["missing"].empty() && !run.contains("merged_from") && !run.contains("rehearsed");
  auto const next = resumable ? how_to_go_on(shown, false) : "next: plateau show " + shown + " --explain";
  std::cout << next << '\n' << shown << std::endl;
}

} // namespace plateau
