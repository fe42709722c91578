// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/gates.hpp"
#include "orchestrator/analysis/summary.hpp"
#include "orchestrator/cli/programs.hpp"
#include "orchestrator/cli/subcommands.hpp"
#include "orchestrator/launch/child.hpp"
#include "orchestrator/store/run_folder.hpp"
#include "orchestrator/store/stored_json.hpp"
#include "schemas/error.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

namespace plateau {

namespace {

namespace fs = std::filesystem;

struct selftest_flags {
  std::int64_t ranks = 2;
  std::string worker, blind_to;
};

/// A case into which something is planted, and what plateau has to say of it.
struct trial {
  std::string planted;  ///< a fault of the job's `inject`, without its target; empty: nothing
  std::string expected; ///< a status other than passed, or a check that finds something; empty: no alarm
};

/// A run of one case for each trial, and the exit code that it has to end with.
struct trial_run {
  std::string name;
  std::vector<trial> trials;
  exit_code code;
};

// Faults that let the case pass cannot share a run with those that do not: the exit code tells the gravest only.
std::vector<trial_run> trial_runs() {
  return {{"judged", {{"", ""}, {"leak:every=5", "growing"}, {"slow:ms=5", "straggler"}}, exit_code::gate_failed},
          {"ended",
           {{"crash", "crashed"}, {"garbage", "crashed"}, {"oom", "out_of_memory"}, {"hang", "timed_out"}},
           exit_code::not_passed}};
}

std::string case_of(std::size_t trial) { return case_id{"eager", 1, static_cast<std::int64_t>(trial) + 1}.text(); }

// Everything is planted on the last rank, so that a verdict on the wrong one is noticed.
json job_of(trial_run const& run, std::int64_t victim) {
  auto inject = json::array();
  for (std::size_t i = 0; i < run.trials.size(); ++i) {
    auto const& planted = run.trials[i].planted;
    if (planted.empty()) continue;
    inject.push_back(planted + (planted.find(':') == std::string::npos ? ":" : ",") + "rank=" + std::to_string(victim) +
                     ",case=" + case_of(i));
  }
  return {{"name", "selftest_" + run.name},
          {"hidden", 16},
          {"batch", 1},
          {"seq_len", 4},
          {"warmup", 20},
          {"requests_per_worker", 400},
          {"modes", {"eager"}},
          {"concurrency_levels", {1}},
          {"repeats", run.trials.size()},
          {"soak", {{"windows", 12}, {"requests_per_window", 50}}},
          {"timeouts_s", {{"stall", 3}}},
          {"inject", inject}};
}

/// What became of a run.
struct outcome {
  int code;
  json summary;
};

outcome perform(trial_run const& run, selftest_flags const& flags, fs::path const& scratch) {
  auto const job_file = scratch / (run.name + ".json"), folder = scratch / run.name,
             log = scratch / (run.name + ".log");
  std::ofstream(job_file) << job_of(run, flags.ranks - 1).dump(2) << '\n';
  std::vector<std::string> words{this_program().string(),
                                 "run",
                                 job_file.string(),
                                 "-o",
                                 folder.string(),
                                 "-n",
                                 std::to_string(flags.ranks),
                                 "--fail-on",
                                 "growing,straggler",
                                 "--worker",
                                 worker_program(flags.worker).string()};
  if (!flags.blind_to.empty()) words.insert(words.end(), {"--blind-to", flags.blind_to});
  constexpr auto longest = std::chrono::minutes(3);
  auto const code = run_child(words, log, longest);
  auto const summary = open_run_folder(folder).summary_json();
  if (!fs::exists(summary)) throw input_error("the run " + run.name + " gave no result; its log: " + log.string());
  return {code, read_stored_json(summary, summary_format)};
}

// The first finding of a check in a case, or null.
json found(json const& summary, std::string const& id, std::string const& check) {
  for (auto const& each : summary["findings"])
    if (each["case_id"] == id && each["check"] == check) return each;
  return nullptr;
}

/// Whether a trial came out as it has to, and what plateau said.
struct verdict {
  bool right;
  std::string said;
};

verdict judge(trial const& t, std::string const& id, json const& summary, std::int64_t victim) {
  auto const same = [&id](json const& entry) { return entry["case_id"] == id; };
  auto const entry = *std::ranges::find_if(summary["cases"], same);
  if (auto const status = entry["status"].get<std::string>(); status != "passed")
    return {status == t.expected, status + ", " + entry["reason"].get<std::string>()};
  auto const growing = found(summary, id, "growing");
  auto const wanted = t.expected.empty() ? growing : found(summary, id, t.expected);
  if (wanted.is_null()) return {t.expected.empty(), "no alarm"};
  bool const right = wanted["ranks"] == json{victim} && (growing.is_null() || t.expected == "growing");
  return {right && !t.expected.empty(), wanted["reason"].get<std::string>()};
}

// Prints a line for each trial; how many came out wrong.
int report(trial_run const& run, outcome const& end, std::int64_t victim) {
  int wrong = 0;
  for (std::size_t i = 0; i < run.trials.size(); ++i) {
    auto const& t = run.trials[i];
    auto const [right, said] = judge(t, case_of(i), end.summary, victim);
    wrong += right ? 0 : 1;
    auto const planted = t.planted.empty() ? std::string("nothing") : t.planted.substr(0, t.planted.find(':'));
    std::printf("%-6s  planted %-8s expected %-14s said: %s\n", right ? "ok" : "WRONG", planted.c_str(),
                t.expected.empty() ? "no alarm" : t.expected.c_str(), said.c_str());
  }
  bool const code_right = end.code == static_cast<int>(run.code);
  std::printf("%-6s  exit code %d, expected %d\n", code_right ? "ok" : "WRONG", end.code, static_cast<int>(run.code));
  std::fflush(stdout);
  return wrong + (code_right ? 0 : 1);
}

fs::path new_scratch_folder() {
  auto name = (fs::temp_directory_path() / "plateau-selftest-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw input_error("cannot make a folder in " + fs::temp_directory_path().string() +
                      "; set TMPDIR to one that can be written");
  return name;
}

exit_code selftest(selftest_flags const& flags) {
  auto const scratch = new_scratch_folder();
  auto const began = std::chrono::steady_clock::now();
  int wrong = 0;
  for (auto const& run : trial_runs()) wrong += report(run, perform(run, flags, scratch), flags.ranks - 1);
  auto const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::printf("selftest: %s, in %.0f s\n",
              wrong == 0 ? "every planted fault was caught, and nothing else"
                         : (std::to_string(wrong) + " wrong; the runs are in " + scratch.string()).c_str(),
              seconds);
  if (wrong == 0) fs::remove_all(scratch);
  return wrong == 0 ? exit_code::good : exit_code::gate_failed;
}

} // namespace

run_subcommand add_selftest(CLI::App& program) {
  auto flags = std::make_shared<selftest_flags>();
  auto* command = program.add_subcommand(
      "selftest", "Plant a leak, a slow rank, a hang, a crash and more, and prove that each is caught here");
  command->footer(
      "Example: plateau selftest\nExit code 0: every planted fault was caught and nothing else; 4: not so.");
  command->add_option("-n,--ranks", flags->ranks, "ranks; faults are planted on the last one")
      ->check(CLI::Range(2, 64));
  command->add_option("--worker", flags->worker, "")->group("");
  command->add_option("--blind-to", flags->blind_to, "")->group("");
  return [flags] { return selftest(*flags); };
}

} // namespace plateau
