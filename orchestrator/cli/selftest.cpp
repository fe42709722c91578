// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/gates.hpp"
#include "orchestrator/analysis/summary.hpp"
#include "orchestrator/cli/command_line.hpp"
#include "orchestrator/cli/programs.hpp"
#include "orchestrator/cli/subcommands.hpp"
#include "orchestrator/process/child.hpp"
#include "orchestrator/store/run_folder.hpp"
#include "orchestrator/store/stored_json.hpp"
#include "schemas/error.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
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
  std::string planted;             ///< a fault of the job's `inject`, without its target; empty: nothing
  std::vector<std::string> checks; ///< that have to find something; `growing` and `unequal` nothing else
  std::string status = "passed";   ///< on the rank that it is planted on; the others pass
  std::string in_the_reason = {};  ///< words that show that the fault was understood
};

/// A run of one case for each trial, and the exit code that it has to end with.
struct trial_run {
  std::string name;
  std::vector<trial> trials;
  exit_code code;
};

// Faults that let the case pass cannot share a run with those that do not: the exit code tells the gravest only. A
// stream thread serves 400 requests timed and then 600 in twelve windows.
std::vector<trial_run> trial_runs() {
  return {{"judged",
           {{"", {"churn"}},
            {"leak:every=5", {"growing", "unequal"}},
            {"leak:every=400,after=360", {"inconclusive", "unequal"}}, // one step, in the last half of the soak
            {"slow:ms=5", {"straggler"}},
            {"slow:ms=1,after=200", {"unsteady"}}},
           exit_code::gate_failed},
          {"ended",
           {{"crash", {}, "crashed", "SIGSEGV"},
            {"garbage", {}, "crashed", "not of the protocol"},
            {"oom", {}, "out_of_memory", "out of memory"},
            {"hang", {}, "timed_out", "no timed request"}},
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
                                 "--allow-shared-gpu", // nothing is compared with another run
                                 "--worker",
                                 worker_program(flags.worker).string()};
  if (!flags.blind_to.empty()) words.insert(words.end(), {"--blind-to", flags.blind_to});
  constexpr auto longest = std::chrono::minutes(3);
  auto const code = run_child(words, log, longest);
  auto const summary = run_folder{folder}.summary_json();
  if (!fs::exists(summary)) {
    std::ifstream said(log);
    throw input_error("the run " + run.name +
                      " gave no result; it said: " + std::string(std::istreambuf_iterator<char>(said), {}));
  }
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

verdict judge_status(trial const& t, json const& entry, std::int64_t victim) {
  auto const reason = entry["reason"].get<std::string>();
  bool right = reason.find(t.in_the_reason) != std::string::npos;
  for (auto const& rank : entry["ranks"])
    right = right && rank["status"] == (rank["rank"] == victim ? t.status : "passed");
  return {right, entry["status"].get<std::string>() + ", " + reason};
}

verdict judge_findings(trial const& t, std::string const& id, json const& summary, std::int64_t victim) {
  verdict v{true, ""};
  for (auto const* check : {"growing", "unequal"}) // no noise makes these
    if (std::ranges::find(t.checks, check) == t.checks.end() && !found(summary, id, check).is_null())
      v = {false, check + std::string(", which nothing was planted for")};
  for (auto const& check : t.checks) {
    auto const finding = found(summary, id, check);
    auto const names_victim = [&] {
      return std::ranges::find(finding["ranks"], json(victim)) != finding["ranks"].end();
    };
    v.right = v.right && !finding.is_null() && names_victim();
    v.said += (v.said.empty() ? "" : "; ") + check + ", " +
              (finding.is_null() ? "nothing" : finding["reason"].get<std::string>());
  }
  return v;
}

verdict judge(trial const& t, std::string const& id, json const& summary, std::int64_t victim) {
  auto const same = [&id](json const& entry) { return entry["case_id"] == id; };
  auto const& entry = *std::ranges::find_if(summary["cases"], same);
  if (t.status != "passed" || entry["status"] != "passed") return judge_status(t, entry, victim);
  return judge_findings(t, id, summary, victim);
}

std::string expectation(trial const& t) {
  if (t.status != "passed") return t.status;
  std::string text;
  for (auto const& check : t.checks) text += (text.empty() ? "" : " and ") + check;
  return text;
}

// Prints a line for each trial; how many came out wrong.
int report(trial_run const& run, outcome const& end, std::int64_t victim) {
  int wrong = 0;
  for (std::size_t i = 0; i < run.trials.size(); ++i) {
    auto const& t = run.trials[i];
    auto const [right, said] = judge(t, case_of(i), end.summary, victim);
    wrong += right ? 0 : 1;
    std::printf("%-5s  planted %s: expected %s; said: %s\n", right ? "ok" : "WRONG",
                t.planted.empty() ? "nothing" : t.planted.c_str(), expectation(t).c_str(), said.c_str());
  }
  bool const code_right = end.code == static_cast<int>(run.code);
  std::printf("%-5s  exit code %d, expected %d\n", code_right ? "ok" : "WRONG", end.code, static_cast<int>(run.code));
  std::fflush(stdout);
  return wrong + (code_right ? 0 : 1);
}

/// A folder for the runs, gone with this unless it is to be kept.
class scratch_folder {
public:
  scratch_folder() {
    auto name = (fs::temp_directory_path() / "plateau-selftest-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw input_error("cannot make a folder in " + fs::temp_directory_path().string() +
                        "; set TMPDIR to one that can be written");
    path_ = name;
  }
  ~scratch_folder() {
    std::error_code ignored;
    if (!kept_) fs::remove_all(path_, ignored);
  }
  scratch_folder(scratch_folder const&) = delete;
  scratch_folder& operator=(scratch_folder const&) = delete;

  fs::path const& path() const { return path_; }
  void keep() { kept_ = true; }

private:
  fs::path path_;
  bool kept_ = false;
};

exit_code selftest(selftest_flags const& flags) try {
  scratch_folder scratch;
  auto const began = std::chrono::steady_clock::now();
  int wrong = 0;
  for (auto const& run : trial_runs()) wrong += report(run, perform(run, flags, scratch.path()), flags.ranks - 1);
  auto const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (wrong > 0) scratch.keep();
  std::printf("selftest: %s, in %.0f s\n",
              wrong == 0 ? "every fault was caught, on its rank"
                         : (std::to_string(wrong) + " wrong; the runs are in " + scratch.path().string()).c_str(),
              seconds);
  return wrong == 0 ? exit_code::good : exit_code::gate_failed;
} catch (interrupted const& e) {
  std::fputs("selftest: stopped on request\n", stderr);
  return static_cast<exit_code>(128 + e.signal);
}

} // namespace

run_subcommand add_selftest(CLI::App& program) {
  auto flags = std::make_shared<selftest_flags>();
  auto* command = program.add_subcommand(
      "selftest", "Plant a leak, a slow rank, a hang, a crash and more, and prove that each is caught here");
  command->footer(
      "Example: plateau selftest\nExit code 0: every planted fault was caught and nothing else; 4: not so.");
  command->add_option("-n,--ranks", flags->ranks, "ranks; faults are planted on the last one")
      ->check(fits({{"type", "integer"}, {"minimum", 2}, {"maximum", 64}}));
  command->add_option("--worker", flags->worker, "")->group("");
  command->add_option("--blind-to", flags->blind_to, "")->group("");
  return [flags] { return selftest(*flags); };
}

} // namespace plateau
